// The verbs of ../README.md on KafkaJS. Its codecs beside gzip come from other packages, and zstd from node itself.
import readline from "node:readline";
import zlib from "node:zlib";
import { promisify } from "node:util";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require("kafkajs");
const snappy = require("snappyjs");
const lz4 = require("lz4-napi");

const [verb, words] = process.argv.slice(2);
const given = JSON.parse(words);
const { topic } = given;
const kafka = new Kafka({ clientId: "kafkajs", brokers: given.bootstrap.split(","), logLevel: logLevel.ERROR });

// Snappy in Java's framing ("xerial") as well as bare.
const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]);
function unsnap(data) {
  if (!data.subarray(0, 8).equals(XERIAL)) return Buffer.from(snappy.uncompress(data));
  const parts = [];
  for (let at = 16; at < data.length; ) {
    const size = data.readInt32BE(at);
    parts.push(Buffer.from(snappy.uncompress(data.subarray(at + 4, at + 4 + size))));
    at += 4 + size;
  }
  return Buffer.concat(parts);
}
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async (encoder) => Buffer.from(snappy.compress(encoder.buffer)),
  decompress: async (data) => unsnap(data),
});
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (data) => lz4.decompressFrame(data),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => promisify(zlib.zstdCompress)(encoder.buffer),
  decompress: async (data) => promisify(zlib.zstdDecompress)(data),
});
const CODECS = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD,
};

const tell = (event, fields = {}) => process.stdout.write(JSON.stringify({ event, ...fields }) + "\n");
const text = (data) => (data === null || data === undefined ? null : data.toString());
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function readInput() {
  const lines = [];
  for await (const line of readline.createInterface({ input: process.stdin })) lines.push(JSON.parse(line));
  return lines;
}

function inputEnd() {
  const state = { ended: false };
  process.stdin.on("end", () => { state.ended = true; });
  process.stdin.resume();
  return state;
}

function message(record) {
  return {
    partition: record.partition, key: record.key, value: record.value, timestamp: String(record.timestamp),
    headers: Object.fromEntries(record.headers),
  };
}

function tellMessage(partition, found) {
  tell("record", {
    partition, offset: Number(found.offset), key: text(found.key), value: text(found.value),
    headers: Object.entries(found.headers ?? {}).map(([name, value]) => [name, text(value)]), timestamp: Number(found.timestamp),
  });
}

async function topics() {
  const admin = kafka.admin();
  await admin.connect();
  const wanted = {
    topic, numPartitions: given.partitions, replicationFactor: -1, configEntries: [{ name: "retention.ms", value: "7200000" }],
  };
  const create = () => admin.createTopics({ topics: [wanted] });
  if (await create()) tell("created");
  // It answers false when all that failed is that the topic exists.
  if (!(await create())) tell("refused", { error: "false: a topic exists already" });
  const listed = async () => tell("listed", { found: (await admin.listTopics()).includes(topic) });
  const described = async () => {
    const found = await admin.fetchTopicMetadata({ topics: [topic] });
    const configs = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }] });
    const retention = configs.resources[0].configEntries.find((entry) => entry.configName === "retention.ms");
    tell("described", { partitions: found.topics[0].partitions.length, retention: retention.configValue });
  };
  await listed();
  await described();
  await admin.createPartitions({ topicPartitions: [{ topic, count: given.partitions + 2 }] });
  await described();
  await admin.deleteTopics({ topics: [topic] });
  await listed();
  await admin.disconnect();
}

async function produce() {
  const records = await readInput();
  const producer = kafka.producer();
  await producer.connect();
  for (const codec of given.codecs) {
    const messages = records.filter((record) => record.codec === codec).map(message);
    await producer.send({ topic, acks: -1, compression: CODECS[codec], messages });
    tell("produced", { codec, count: messages.length });
  }
  await producer.disconnect();
}

// KafkaJS has no reading without a group: one of its own, whose only member it is, has committed where to begin.
async function consume() {
  const end = inputEnd();
  const admin = kafka.admin();
  await admin.connect();
  let starts;
  if (given.from === "earliest" || given.from === "latest") {
    const which = given.from === "earliest" ? "low" : "high";
    starts = (await admin.fetchTopicOffsets(topic)).map((each) => ({ partition: each.partition, offset: each[which] }));
  } else {
    starts = await admin.fetchTopicOffsetsByTimestamp(topic, Number(given.from));
  }
  const groupId = `kafkajs-${topic}-${given.from}-${process.pid}`;
  await admin.setOffsets({ groupId, topic, partitions: starts.map(({ partition, offset }) => ({ partition, offset })) });
  await admin.disconnect();
  const reader = kafka.consumer({ groupId, readUncommitted: given.isolation !== "read_committed", maxWaitTimeInMs: 200 });
  await reader.connect();
  await reader.subscribe({ topics: [topic], fromBeginning: true });
  let left = given.count;
  await reader.run({
    autoCommit: false,
    eachMessage: async ({ partition, message: found }) => {
      if (left-- > 0) tellMessage(partition, found);
    },
  });
  tell("ready");
  while (left > 0 && !end.ended) await pause(20);
  await reader.disconnect();
}

async function group() {
  const end = inputEnd();
  const member = kafka.consumer({ groupId: given.group, heartbeatInterval: 300, maxWaitTimeInMs: 200 });
  member.on(member.events.GROUP_JOIN, ({ payload }) => tell("assigned", { partitions: [...(payload.memberAssignment[topic] ?? [])].sort() }));
  await member.connect();
  await member.subscribe({ topics: [topic], fromBeginning: true });
  await member.run({
    autoCommit: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
      for (const found of batch.messages) {
        tellMessage(batch.partition, found);
        resolveOffset(found.offset);
      }
      const next = String(Number(batch.lastOffset()) + 1);
      await member.commitOffsets([{ topic, partition: batch.partition, offset: next }]);
      tell("committed");
      await heartbeat();
    },
  });
  while (!end.ended) await pause(20);
  await member.disconnect();
}

async function transaction() {
  const records = await readInput();
  const producer = kafka.producer({ transactionalId: given.id, maxInFlightRequests: 1, idempotent: true });
  await producer.connect();
  for (let number = 0; number < given.transactions; number++) {
    const open = await producer.transaction();
    await open.send({ topic, messages: records.filter((record) => record.transaction === number).map(message) });
    if (number === given.transactions - 1) {
      const topics = [{ topic, partitions: [{ partition: 0, offset: String(given.offset) }] }];
      await open.sendOffsets({ consumerGroupId: given.group, topics });
    }
    await (number % 2 ? open.abort() : open.commit());
    tell(number % 2 ? "aborted" : "committed");
  }
  await producer.disconnect();
}

async function failover() {
  const end = inputEnd();
  const producer = kafka.producer();
  await producer.connect();
  const open = new Set();
  for (let n = 0; !end.ended; n++) {
    const sent = producer.send({ topic, messages: [{ value: String(n), partition: n % given.partitions }] }).then(
      () => tell("acknowledged", { n }),
      (why) => tell("failed", { n, error: String(why) }),
    ).finally(() => open.delete(sent));
    open.add(sent);
    await pause(given.pause_ms);
  }
  await Promise.all(open);
  await producer.disconnect();
}

await { topics, produce, consume, group, transaction, failover }[verb]();
tell("done");
// What is written to a full pipe is lost by an exit.
process.stdout.write("", () => process.exit(0));
