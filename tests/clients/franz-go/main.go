// The verbs of ../README.md on franz-go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type record struct {
	Codec       string      `json:"codec"`
	Transaction int         `json:"transaction"`
	Partition   int32       `json:"partition"`
	Key         *string     `json:"key"`
	Value       *string     `json:"value"`
	Headers     [][2]string `json:"headers"`
	Timestamp   int64       `json:"timestamp"`
}

type arguments struct {
	Bootstrap, Topic, From, Isolation, Group, ID string
	Partitions                                   int32
	Codecs                                       []string
	Count, Transactions                          int
	Offset                                       int64
	PauseMs                                      int `json:"pause_ms"`
}

type fields map[string]any

var (
	given  arguments
	ctx    = context.Background()
	output sync.Mutex
)

func main() {
	check(json.Unmarshal([]byte(os.Args[2]), &given))
	map[string]func(){
		"topics": topics, "produce": produce, "consume": consume, "group": group,
		"transaction": transaction, "failover": failover,
	}[os.Args[1]]()
	tell("done", nil)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tell(event string, more fields) {
	line := fields{"event": event}
	for name, value := range more {
		line[name] = value
	}
	text, err := json.Marshal(line)
	check(err)
	output.Lock()
	defer output.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func readInput() (records []record) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var next record
		check(json.Unmarshal(lines.Bytes(), &next))
		records = append(records, next)
	}
	return records
}

// inputEnd is done when the input ends.
func inputEnd() context.Context {
	until, end := context.WithCancel(ctx)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		}
		end()
	}()
	return until
}

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(strings.Split(given.Bootstrap, ",")...))...)
	check(err)
	return made
}

func bytesOf(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

func textOf(data []byte) any {
	if data == nil {
		return nil
	}
	return string(data)
}

func (r record) forKafka() *kgo.Record {
	out := &kgo.Record{
		Topic: given.Topic, Partition: r.Partition, Key: bytesOf(r.Key), Value: bytesOf(r.Value),
		Timestamp: time.UnixMilli(r.Timestamp),
	}
	for _, header := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: header[0], Value: []byte(header[1])})
	}
	return out
}

func tellRecord(r *kgo.Record) {
	headers := [][2]string{}
	for _, header := range r.Headers {
		headers = append(headers, [2]string{header.Key, string(header.Value)})
	}
	tell("record", fields{
		"partition": r.Partition, "offset": r.Offset, "key": textOf(r.Key), "value": textOf(r.Value),
		"headers": headers, "timestamp": r.Timestamp.UnixMilli(),
	})
}

// poll tells what there is, and counts it.
func poll(c *kgo.Client, until context.Context) int {
	fetches := c.PollFetches(until)
	if until.Err() == nil {
		check(fetches.Err())
	}
	fetches.EachRecord(tellRecord)
	return fetches.NumRecords()
}

func topics() {
	admin := kadm.NewClient(client())
	retention := "7200000"
	create := func() error {
		_, err := admin.CreateTopic(ctx, given.Partitions, -1, map[string]*string{"retention.ms": &retention}, given.Topic)
		return err
	}
	listed := func() {
		// By a client of its own: one keeps what it was told for some seconds.
		found, err := kadm.NewClient(client()).ListTopics(ctx)
		check(err)
		tell("listed", fields{"found": found.Has(given.Topic)})
	}
	described := func() {
		found, err := admin.ListTopics(ctx, given.Topic)
		check(err)
		configs, err := admin.DescribeTopicConfigs(ctx, given.Topic)
		check(err)
		for _, config := range configs[0].Configs {
			if config.Key == "retention.ms" {
				tell("described", fields{"partitions": len(found[given.Topic].Partitions), "retention": *config.Value})
			}
		}
	}
	check(create())
	tell("created", nil)
	tell("refused", fields{"error": create().Error()})
	listed()
	described()
	grown, err := admin.UpdatePartitions(ctx, int(given.Partitions)+2, given.Topic)
	check(err)
	check(grown.Error())
	described()
	deleted, err := admin.DeleteTopics(ctx, given.Topic)
	check(err)
	check(deleted.Error())
	listed()
}

func produce() {
	records := readInput()
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, codec := range given.Codecs {
		producer := client(kgo.ProducerBatchCompression(codecs[codec]), kgo.ProducerLinger(20*time.Millisecond),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))
		var mine []*kgo.Record
		for _, r := range records {
			if r.Codec == codec {
				mine = append(mine, r.forKafka())
			}
		}
		check(producer.ProduceSync(ctx, mine...).FirstErr())
		producer.Close()
		tell("produced", fields{"codec": codec, "count": len(mine)})
	}
}

func consume() {
	until := inputEnd()
	starts := map[int32]kgo.Offset{}
	admin := kadm.NewClient(client())
	var listed kadm.ListedOffsets
	var err error
	switch given.From {
	case "earliest":
		listed, err = admin.ListStartOffsets(ctx, given.Topic)
	case "latest":
		listed, err = admin.ListEndOffsets(ctx, given.Topic)
	default:
		timestamp, _ := strconv.ParseInt(given.From, 10, 64)
		listed, err = admin.ListOffsetsAfterMilli(ctx, timestamp, given.Topic)
	}
	check(err)
	check(listed.Error())
	listed.Each(func(found kadm.ListedOffset) { starts[found.Partition] = kgo.NewOffset().At(found.Offset) })
	isolation := kgo.ReadUncommitted()
	if given.Isolation == "read_committed" {
		isolation = kgo.ReadCommitted()
	}
	reader := client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{given.Topic: starts}), kgo.FetchIsolationLevel(isolation))
	tell("ready", nil)
	for left := given.Count; left > 0 && until.Err() == nil; {
		left -= poll(reader, until)
	}
	reader.Close()
}

func group() {
	until := inputEnd()
	var lock sync.Mutex
	has := map[int32]bool{}
	change := func(partitions []int32, now bool) {
		lock.Lock()
		defer lock.Unlock()
		for _, partition := range partitions {
			has[partition] = now
		}
		all := []int{}
		for partition, mine := range has {
			if mine {
				all = append(all, int(partition))
			}
		}
		sort.Ints(all)
		tell("assigned", fields{"partitions": all})
	}
	gone := func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { change(lost[given.Topic], false) }
	member := client(kgo.ConsumerGroup(given.Group), kgo.ConsumeTopics(given.Topic), kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(300*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) { change(got[given.Topic], true) }),
		kgo.OnPartitionsRevoked(gone), kgo.OnPartitionsLost(gone))
	for until.Err() == nil {
		if poll(member, until) > 0 {
			check(member.CommitUncommittedOffsets(ctx))
			tell("committed", nil)
		}
	}
	member.Close()
}

func transaction() {
	records := readInput()
	// A session ties offsets to a member of a group; here they are committed by hand, so the requests are made by hand too.
	producer := client(kgo.TransactionalID(given.ID), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for number := 0; number < given.Transactions; number++ {
		check(producer.BeginTransaction())
		for _, r := range records {
			if r.Transaction == number {
				producer.Produce(ctx, r.forKafka(), func(_ *kgo.Record, err error) { check(err) })
			}
		}
		check(producer.Flush(ctx))
		if number == given.Transactions-1 {
			commitOffset(producer)
		}
		commit := kgo.TransactionEndTry(number%2 == 0)
		check(producer.EndTransaction(ctx, commit))
		tell(map[bool]string{true: "committed", false: "aborted"}[bool(commit)], nil)
	}
	producer.Close()
}

func failover() {
	until := inputEnd()
	producer := client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for n := 0; until.Err() == nil; n++ {
		next := &kgo.Record{Topic: given.Topic, Partition: int32(n) % given.Partitions, Value: []byte(strconv.Itoa(n))}
		producer.Produce(ctx, next, func(_ *kgo.Record, err error) {
			if err != nil {
				tell("failed", fields{"n": n, "error": err.Error()})
			} else {
				tell("acknowledged", fields{"n": n})
			}
		})
		time.Sleep(time.Duration(given.PauseMs) * time.Millisecond)
	}
	check(producer.Flush(ctx))
	producer.Close()
}
