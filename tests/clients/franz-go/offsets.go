package main

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commitOffset commits an offset for a group in the open transaction, as kgo.GroupTransactSession does for its member's.
func commitOffset(producer *kgo.Client) {
	id, epoch, err := producer.ProducerID(ctx)
	check(err)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = given.ID, id, epoch, given.Group
	added, err := add.RequestWith(ctx, producer)
	check(err)
	check(kerr.ErrorForCode(added.ErrorCode))

	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = given.ID, id, epoch, given.Group
	commit.Generation = -1
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = given.Offset
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.Partitions = given.Topic, append(topic.Partitions, partition)
	commit.Topics = append(commit.Topics, topic)
	committed, err := commit.RequestWith(ctx, producer)
	check(err)
	check(kerr.ErrorForCode(committed.Topics[0].Partitions[0].ErrorCode))
}
