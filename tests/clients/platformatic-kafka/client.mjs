// The verbs of ../README.md on @platformatic/kafka.
import readline from "node:readline";
import {
  Admin, ConfigResourceTypes, Consumer, FetchIsolationLevels, ListOffsetTimestamps, MessagesStreamFallbackModes,
  MessagesStreamModes, Producer,
} from "@platformatic/kafka";

const [verb, words] = process.argv.slice(2);
const given = JSON.parse(words);
const { topic } = given;
const common = { clientId: "platformatic", bootstrapBrokers: given.bootstrap.split(",") };

const tell = (event, fields = {}) => process.stdout.write(JSON.stringify({ event, ...fields }) + "\n");
const text = (data) => (data === null || data === undefined ? null : data.toString());
const bytes = (value) => (value === null ? null : Buffer.from(value));
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
    topic, partition: record.partition, key: bytes(record.key) ?? undefined, value: bytes(record.value), timestamp: BigInt(record.timestamp),
    headers: new Map(record.headers.map(([name, value]) => [Buffer.from(name), Buffer.from(value)])),
  };
}

function tellMessage(found) {
  tell("record", {
    partition: found.partition, offset: Number(found.offset), key: text(found.key), value: text(found.value),
    headers: found.headerEntries.map(([name, value]) => [text(name), text(value)]), timestamp: Number(found.timestamp),
  });
}

// All that an error says, and those within it.
function reason(error) {
  return [error.message, error.apiId, ...(error.errors ?? []).map(reason), error.cause ? reason(error.cause) : ""].filter(Boolean).join(": ");
}

async function topics() {
  const admin = new Admin(common);
  const create = () => admin.createTopics({
    topics: [topic], partitions: given.partitions, replicas: -1, configs: [{ name: "retention.ms", value: "7200000" }],
  });
  const listed = async () => tell("listed", { found: (await admin.listTopics()).includes(topic) });
  const described = async () => {
    const metadata = await admin.metadata({ topics: [topic], forceUpdate: true });
    const configs = await admin.describeConfigs({ resources: [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }] });
    const retention = configs[0].configs.find((config) => config.name === "retention.ms");
    tell("described", { partitions: metadata.topics.get(topic).partitionsCount, retention: retention.value });
  };
  await create();
  tell("created");
  await create().catch((error) => tell("refused", { error: reason(error) }));
  await listed();
  await described();
  await admin.createPartitions({ topics: [{ name: topic, count: given.partitions + 2 }] });
  await described();
  await admin.deleteTopics({ topics: [topic] });
  await listed();
  await admin.close();
}

async function produce() {
  const records = await readInput();
  const producer = new Producer(common);
  for (const codec of given.codecs) {
    const messages = records.filter((record) => record.codec === codec).map(message);
    await producer.send({ messages, compression: codec });
    tell("produced", { codec, count: messages.length });
  }
  await producer.close();
}

async function consume() {
  const end = inputEnd();
  const reader = new Consumer({
    ...common, groupId: `platformatic-${topic}-${given.from}-${process.pid}`, autocommit: false, maxWaitTime: 200,
    isolationLevel: given.isolation === "read_committed" ? FetchIsolationLevels.READ_COMMITTED : FetchIsolationLevels.READ_UNCOMMITTED,
  });
  const special = { earliest: ListOffsetTimestamps.EARLIEST, latest: ListOffsetTimestamps.LATEST };
  const listed = await reader.listOffsets({ topics: [topic], timestamp: special[given.from] ?? BigInt(given.from) });
  const offsets = listed.get(topic).map((offset, partition) => ({ topic, partition, offset }));
  const stream = await reader.consume({ topics: [topic], mode: MessagesStreamModes.MANUAL, offsets });
  tell("ready");
  let left = given.count;
  stream.on("data", (found) => {
    if (left-- > 0) tellMessage(found);
  });
  while (left > 0 && !end.ended) await pause(20);
  await stream.close();
  await reader.close(true);
}

async function group() {
  const end = inputEnd();
  const member = new Consumer({ ...common, groupId: given.group, autocommit: false, maxWaitTime: 200, heartbeatInterval: 300 });
  member.on("consumer:group:join", ({ assignments }) => {
    tell("assigned", { partitions: (assignments ?? []).flatMap((each) => each.partitions).sort() });
  });
  const stream = await member.consume({
    topics: [topic], mode: MessagesStreamModes.COMMITTED, fallbackMode: MessagesStreamFallbackModes.EARLIEST,
  });
  let last = Promise.resolve();
  stream.on("data", (found) => {
    tellMessage(found);
    last = last.then(() => found.commit()).then(() => tell("committed"));
  });
  while (!end.ended) await pause(20);
  await last;
  await stream.close();
  await member.close(true);
}

async function transaction() {
  const records = await readInput();
  const producer = new Producer({ ...common, idempotent: true, transactionalId: given.id });
  for (let number = 0; number < given.transactions; number++) {
    const open = await producer.beginTransaction();
    await open.send({ messages: records.filter((record) => record.transaction === number).map(message) });
    if (number === given.transactions - 1) await addOffset(open);
    await (number % 2 ? open.abort() : open.commit());
    tell(number % 2 ? "aborted" : "committed");
  }
  await producer.close();
}

// As of a message that a consumer of the group had read, but none has joined.
async function addOffset(open) {
  const consumer = new Consumer({ ...common, groupId: given.group });
  const coordinatorId = await consumer.findGroupCoordinator();
  await open.addConsumer(consumer);
  await open.addOffset({
    topic, partition: 0, offset: BigInt(given.offset) - 1n,
    metadata: { consumer: { groupId: given.group, generationId: -1, memberId: "", coordinatorId } },
  });
  await consumer.close(true);
}

async function failover() {
  const end = inputEnd();
  const producer = new Producer(common);
  const open = new Set();
  for (let n = 0; !end.ended; n++) {
    const sent = producer.send({ messages: [{ topic, partition: n % given.partitions, value: Buffer.from(String(n)) }] }).then(
      () => tell("acknowledged", { n }),
      (error) => tell("failed", { n, error: reason(error) }),
    ).finally(() => open.delete(sent));
    open.add(sent);
    await pause(given.pause_ms);
  }
  await Promise.all(open);
  await producer.close();
}

await { topics, produce, consume, group, transaction, failover }[verb]();
tell("done");
// What is written to a full pipe is lost by an exit.
process.stdout.write("", () => process.exit(0));
