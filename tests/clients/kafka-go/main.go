// The verbs of ../README.md on segmentio/kafka-go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
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

func addresses() []string {
	return strings.Split(given.Bootstrap, ",")
}

// client has a Transport of its own: one answers Metadata from what it was told some seconds ago.
func client() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(addresses()...), Timeout: 30 * time.Second, Transport: &kafka.Transport{}}
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

// manual sends a record to the partition that it names in WriterData.
type manual struct{}

func (manual) Balance(next kafka.Message, _ ...int) int {
	return next.WriterData.(int)
}

func writer() *kafka.Writer {
	return &kafka.Writer{
		Addr: kafka.TCP(addresses()...), Topic: given.Topic, Balancer: manual{}, RequiredAcks: kafka.RequireAll,
		BatchTimeout: 20 * time.Millisecond,
	}
}

func (r record) forKafka() kafka.Message {
	out := kafka.Message{
		WriterData: int(r.Partition), Key: bytesOf(r.Key), Value: bytesOf(r.Value), Time: time.UnixMilli(r.Timestamp),
	}
	for _, header := range r.Headers {
		out.Headers = append(out.Headers, kafka.Header{Key: header[0], Value: []byte(header[1])})
	}
	return out
}

func tellRecord(r kafka.Message) {
	headers := [][2]string{}
	for _, header := range r.Headers {
		headers = append(headers, [2]string{header.Key, string(header.Value)})
	}
	tell("record", fields{
		"partition": r.Partition, "offset": r.Offset, "key": textOf(r.Key), "value": textOf(r.Value),
		"headers": headers, "timestamp": r.Time.UnixMilli(),
	})
}

func topics() {
	c := client()
	create := func() error {
		answer, err := c.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
			Topic: given.Topic, NumPartitions: int(given.Partitions), ReplicationFactor: -1,
			ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "7200000"}},
		}}})
		check(err)
		return answer.Errors[given.Topic]
	}
	listed := func() {
		found, err := client().Metadata(ctx, &kafka.MetadataRequest{})
		check(err)
		there := false
		for _, topic := range found.Topics {
			there = there || topic.Name == given.Topic
		}
		tell("listed", fields{"found": there})
	}
	described := func() {
		found, err := client().Metadata(ctx, &kafka.MetadataRequest{Topics: []string{given.Topic}})
		check(err)
		configs, err := c.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: given.Topic, ConfigNames: []string{"retention.ms"},
		}}})
		check(err)
		retention := configs.Resources[0].ConfigEntries[0].ConfigValue
		tell("described", fields{"partitions": len(found.Topics[0].Partitions), "retention": retention})
	}
	check(create())
	tell("created", nil)
	tell("refused", fields{"error": create().Error()})
	listed()
	described()
	grown, err := c.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: given.Topic, Count: given.Partitions + 2}},
	})
	check(err)
	check(grown.Errors[given.Topic])
	described()
	deleted, err := c.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{given.Topic}})
	check(err)
	check(deleted.Errors[given.Topic])
	listed()
}

func produce() {
	records := readInput()
	codecs := map[string]kafka.Compression{"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	for _, codec := range given.Codecs {
		out := writer()
		out.Compression = codecs[codec]
		var mine []kafka.Message
		for _, r := range records {
			if r.Codec == codec {
				mine = append(mine, r.forKafka())
			}
		}
		check(out.WriteMessages(ctx, mine...))
		check(out.Close())
		tell("produced", fields{"codec": codec, "count": len(mine)})
	}
}

// startOf asks for the offset where a partition is to be read from.
func startOf(partition int) int64 {
	var wanted kafka.OffsetRequest
	switch given.From {
	case "earliest":
		wanted = kafka.FirstOffsetOf(partition)
	case "latest":
		wanted = kafka.LastOffsetOf(partition)
	default:
		timestamp, _ := strconv.ParseInt(given.From, 10, 64)
		wanted = kafka.TimeOffsetOf(partition, time.UnixMilli(timestamp))
	}
	listed, err := client().ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{given.Topic: {wanted}},
	})
	check(err)
	found := listed.Topics[given.Topic][0]
	check(found.Error)
	switch given.From {
	case "earliest":
		return found.FirstOffset
	case "latest":
		return found.LastOffset
	}
	for offset := range found.Offsets {
		return offset
	}
	return kafka.LastOffset
}

func consume() {
	until := inputEnd()
	isolation := kafka.ReadUncommitted
	if given.Isolation == "read_committed" {
		isolation = kafka.ReadCommitted
	}
	records := make(chan kafka.Message)
	for partition := 0; partition < int(given.Partitions); partition++ {
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: addresses(), Topic: given.Topic, Partition: partition, IsolationLevel: isolation, MaxWait: 200 * time.Millisecond,
			ErrorLogger: log.Default(),
		})
		check(reader.SetOffset(startOf(partition)))
		go func() {
			for {
				next, err := reader.ReadMessage(until)
				if until.Err() != nil {
					return
				}
				check(err)
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

// group uses ConsumerGroup: the Reader above it does not say which partitions it has.
func group() {
	until := inputEnd()
	joined, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: given.Group, Brokers: addresses(), Topics: []string{given.Topic}, HeartbeatInterval: 300 * time.Millisecond,
		StartOffset: kafka.FirstOffset,
	})
	check(err)
	for until.Err() == nil {
		generation, err := joined.Next(until)
		if until.Err() != nil {
			break
		}
		check(err)
		all := []int{}
		for _, assigned := range generation.Assignments[given.Topic] {
			all = append(all, assigned.ID)
			generation.Start(func(ctx context.Context) { readPartition(ctx, generation, assigned) })
		}
		sort.Ints(all)
		tell("assigned", fields{"partitions": all})
	}
	check(joined.Close())
}

func readPartition(ctx context.Context, generation *kafka.Generation, assigned kafka.PartitionAssignment) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: addresses(), Topic: given.Topic, Partition: assigned.ID, MaxWait: 200 * time.Millisecond,
	})
	defer reader.Close()
	check(reader.SetOffset(assigned.Offset))
	for {
		next, err := reader.ReadMessage(ctx)
		if err != nil {
			return // the generation ended
		}
		tellRecord(next)
		offsets := map[string]map[int]int64{given.Topic: {assigned.ID: next.Offset + 1}}
		check(generation.CommitOffsets(offsets))
		tell("committed", nil)
	}
}

func transaction() {
	check(fmt.Errorf("no transactions in this client"))
}

// failover waits for each write on its own: WriteMessages returns when it is acknowledged.
// The Transport of its own: by default one asks who leads every six seconds, and the Writer's ten tries are over after seven.
func failover() {
	until := inputEnd()
	out := writer()
	out.Transport = &kafka.Transport{MetadataTTL: time.Second}
	var open sync.WaitGroup
	for n := 0; until.Err() == nil; n++ {
		open.Go(func() {
			err := out.WriteMessages(ctx, kafka.Message{WriterData: n % int(given.Partitions), Value: []byte(strconv.Itoa(n))})
			if err != nil {
				tell("failed", fields{"n": n, "error": err.Error()})
			} else {
				tell("acknowledged", fields{"n": n})
			}
		})
		time.Sleep(time.Duration(given.PauseMs) * time.Millisecond)
	}
	open.Wait()
	check(out.Close())
}
