// The verbs of ../README.md on sarama.
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

	"github.com/IBM/sarama"
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

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func bootstrap() []string {
	return strings.Split(given.Bootstrap, ",")
}

// encoded keeps null and empty apart.
func encoded(text *string) sarama.Encoder {
	if text == nil {
		return nil
	}
	return sarama.StringEncoder(*text)
}

func textOf(data []byte) any {
	if data == nil {
		return nil
	}
	return string(data)
}

func (r record) forKafka() *sarama.ProducerMessage {
	out := &sarama.ProducerMessage{
		Topic: given.Topic, Partition: r.Partition, Key: encoded(r.Key), Value: encoded(r.Value),
		Timestamp: time.UnixMilli(r.Timestamp),
	}
	for _, header := range r.Headers {
		out.Headers = append(out.Headers, sarama.RecordHeader{Key: []byte(header[0]), Value: []byte(header[1])})
	}
	return out
}

func tellRecord(r *sarama.ConsumerMessage) {
	headers := [][2]string{}
	for _, header := range r.Headers {
		headers = append(headers, [2]string{string(header.Key), string(header.Value)})
	}
	tell("record", fields{
		"partition": r.Partition, "offset": r.Offset, "key": textOf(r.Key), "value": textOf(r.Value),
		"headers": headers, "timestamp": r.Timestamp.UnixMilli(),
	})
}

func topics() {
	admin, err := sarama.NewClusterAdmin(bootstrap(), settings())
	check(err)
	retention := "7200000"
	create := func() error {
		detail := &sarama.TopicDetail{
			NumPartitions: given.Partitions, ReplicationFactor: -1, ConfigEntries: map[string]*string{"retention.ms": &retention},
		}
		return admin.CreateTopic(given.Topic, detail, false)
	}
	listed := func() {
		found, err := admin.ListTopics()
		check(err)
		_, there := found[given.Topic]
		tell("listed", fields{"found": there})
	}
	described := func() {
		found, err := admin.DescribeTopics([]string{given.Topic})
		check(err)
		configs, err := admin.DescribeConfig(sarama.ConfigResource{
			Type: sarama.TopicResource, Name: given.Topic, ConfigNames: []string{"retention.ms"},
		})
		check(err)
		tell("described", fields{"partitions": len(found[0].Partitions), "retention": configs[0].Value})
	}
	check(create())
	tell("created", nil)
	tell("refused", fields{"error": create().Error()})
	listed()
	described()
	check(admin.CreatePartitions(given.Topic, given.Partitions+2, nil, false))
	described()
	check(admin.DeleteTopic(given.Topic))
	listed()
	check(admin.Close())
}

func produce() {
	records := readInput()
	codecs := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	for _, codec := range given.Codecs {
		config := settings()
		config.Producer.Compression = codecs[codec]
		config.Producer.Flush.Frequency = 20 * time.Millisecond
		producer, err := sarama.NewSyncProducer(bootstrap(), config)
		check(err)
		var mine []*sarama.ProducerMessage
		for _, r := range records {
			if r.Codec == codec {
				mine = append(mine, r.forKafka())
			}
		}
		check(producer.SendMessages(mine))
		check(producer.Close())
		tell("produced", fields{"codec": codec, "count": len(mine)})
	}
}

func consume() {
	until := inputEnd()
	config := settings()
	if given.Isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	client, err := sarama.NewClient(bootstrap(), config)
	check(err)
	consumer, err := sarama.NewConsumerFromClient(client)
	check(err)
	at := map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}
	time, special := at[given.From]
	if !special {
		time, _ = strconv.ParseInt(given.From, 10, 64)
	}
	records := make(chan *sarama.ConsumerMessage)
	for partition := int32(0); partition < given.Partitions; partition++ {
		start, err := client.GetOffset(given.Topic, partition, time)
		check(err)
		reader, err := consumer.ConsumePartition(given.Topic, partition, start)
		check(err)
		go func() {
			for next := range reader.Messages() {
				records <- next
			}
		}()
	}
	tell("ready", nil)
	for left := given.Count; left > 0; left-- {
		select {
		case next := <-records:
			tellRecord(next)
		case <-until.Done():
			return
		}
	}
}

// member is what a session of the group calls.
type member struct{}

func (member) Setup(session sarama.ConsumerGroupSession) error {
	all := []int{}
	for _, partition := range session.Claims()[given.Topic] {
		all = append(all, int(partition))
	}
	sort.Ints(all)
	tell("assigned", fields{"partitions": all})
	return nil
}

func (member) Cleanup(sarama.ConsumerGroupSession) error {
	return nil
}

func (member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for next := range claim.Messages() {
		tellRecord(next)
		session.MarkMessage(next, "")
		session.Commit()
		tell("committed", nil)
	}
	return nil
}

func group() {
	until := inputEnd()
	config := settings()
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	joined, err := sarama.NewConsumerGroup(bootstrap(), given.Group, config)
	check(err)
	for until.Err() == nil {
		check(joined.Consume(until, []string{given.Topic}, member{}))
	}
	check(joined.Close())
}

func transaction() {
	records := readInput()
	config := settings()
	config.Producer.Transaction.ID = given.ID
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(bootstrap(), config)
	check(err)
	for number := 0; number < given.Transactions; number++ {
		check(producer.BeginTxn())
		for _, r := range records {
			if r.Transaction == number {
				_, _, err := producer.SendMessage(r.forKafka())
				check(err)
			}
		}
		if number == given.Transactions-1 {
			offsets := map[string][]*sarama.PartitionOffsetMetadata{given.Topic: {{Partition: 0, Offset: given.Offset}}}
			check(producer.AddOffsetsToTxn(offsets, given.Group))
		}
		if number%2 == 1 {
			check(producer.AbortTxn())
			tell("aborted", nil)
		} else {
			check(producer.CommitTxn())
			tell("committed", nil)
		}
	}
	check(producer.Close())
}

func failover() {
	until := inputEnd()
	config := settings()
	config.Producer.Return.Errors = true
	producer, err := sarama.NewAsyncProducer(bootstrap(), config)
	check(err)
	var told sync.WaitGroup
	told.Add(2)
	go func() {
		defer told.Done()
		for sent := range producer.Successes() {
			tell("acknowledged", fields{"n": sent.Metadata})
		}
	}()
	go func() {
		defer told.Done()
		for why := range producer.Errors() {
			tell("failed", fields{"n": why.Msg.Metadata, "error": why.Err.Error()})
		}
	}()
	for n := 0; until.Err() == nil; n++ {
		producer.Input() <- &sarama.ProducerMessage{
			Topic: given.Topic, Partition: int32(n) % given.Partitions, Value: sarama.StringEncoder(strconv.Itoa(n)), Metadata: n,
		}
		time.Sleep(time.Duration(given.PauseMs) * time.Millisecond)
	}
	producer.AsyncClose()
	told.Wait()
}
