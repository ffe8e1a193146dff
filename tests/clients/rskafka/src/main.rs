//! The verbs of ../README.md on rskafka, which has no groups and no transactions.
use chrono::{DateTime, Utc};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use serde_json::{json, Value};
use std::error::Error;
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

fn tell(line: Value) {
    // One call of println! is one line, whatever other tasks write.
    println!("{line}");
}

fn read_input() -> Vec<Value> {
    let lines = std::io::stdin().lock().lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

/// Becomes true when the input ends.
fn input_end() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let also = ended.clone();
    std::thread::spawn(move || {
        for _ in std::io::stdin().lock().lines() {}
        also.store(true, Ordering::SeqCst);
    });
    ended
}

fn bytes(text: &Value) -> Option<Vec<u8>> {
    text.as_str().map(|text| text.as_bytes().to_vec())
}

fn text(data: &Option<Vec<u8>>) -> Value {
    data.as_ref().map_or(Value::Null, |data| json!(String::from_utf8_lossy(data)))
}

fn record(line: &Value) -> Record {
    let headers = line["headers"].as_array().unwrap().iter();
    Record {
        key: bytes(&line["key"]),
        value: bytes(&line["value"]),
        headers: headers.map(|pair| (pair[0].as_str().unwrap().into(), bytes(&pair[1]).unwrap())).collect(),
        timestamp: DateTime::from_timestamp_millis(line["timestamp"].as_i64().unwrap()).unwrap(),
    }
}

fn tell_record(partition: i32, offset: i64, record: &Record) {
    let headers: Vec<_> = record.headers.iter().map(|(name, value)| json!([name, String::from_utf8_lossy(value)])).collect();
    tell(json!({
        "event": "record", "partition": partition, "offset": offset, "key": text(&record.key), "value": text(&record.value),
        "headers": headers, "timestamp": record.timestamp.timestamp_millis(),
    }));
}

fn number(given: &Value, name: &str) -> i64 {
    given[name].as_i64().unwrap()
}

fn topic(given: &Value) -> String {
    given["topic"].as_str().unwrap().into()
}

async fn partition_client(client: &Client, given: &Value, partition: i32) -> Result<PartitionClient, rskafka::client::error::Error> {
    client.partition_client(topic(given), partition, UnknownTopicHandling::Retry).await
}

async fn tell_listed(client: &Client, given: &Value) -> Outcome {
    let found = client.list_topics().await?.into_iter().find(|each| each.name == topic(given));
    tell(json!({"event": "listed", "found": found.is_some()}));
    Ok(())
}

async fn tell_described(client: &Client, given: &Value) -> Outcome {
    let found = client.list_topics().await?.into_iter().find(|each| each.name == topic(given)).ok_or("not listed")?;
    tell(json!({"event": "described", "partitions": found.partitions.len()}));
    Ok(())
}

async fn topics(client: &Client, given: &Value) -> Outcome {
    let controller = client.controller_client()?;
    let partitions = number(given, "partitions") as i32;
    controller.create_topic(topic(given), partitions, -1, 30_000).await?;
    tell(json!({"event": "created"}));
    if let Err(why) = controller.create_topic(topic(given), partitions, -1, 30_000).await {
        tell(json!({"event": "refused", "error": why.to_string()}));
    }
    tell_listed(client, given).await?;
    tell_described(client, given).await?;
    tell_described(client, given).await?;
    controller.delete_topic(topic(given), 30_000).await?;
    tell_listed(client, given).await
}

async fn produce(client: &Client, given: &Value) -> Outcome {
    let lines = read_input();
    for codec in given["codecs"].as_array().unwrap() {
        let compression = match codec.as_str().unwrap() {
            "gzip" => Compression::Gzip,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            _ => Compression::NoCompression,
        };
        let mut count = 0;
        for partition in 0..number(given, "partitions") {
            let mine = lines.iter().filter(|line| line["codec"] == *codec && line["partition"] == partition);
            let records: Vec<_> = mine.map(record).collect();
            count += records.len();
            partition_client(client, given, partition as i32).await?.produce(records, compression).await?;
        }
        tell(json!({"event": "produced", "codec": codec, "count": count}));
    }
    Ok(())
}

async fn start_of(reader: &PartitionClient, given: &Value) -> Result<i64, rskafka::client::error::Error> {
    match given["from"].as_str().unwrap() {
        "earliest" => reader.get_offset(OffsetAt::Earliest).await,
        "latest" => reader.get_offset(OffsetAt::Latest).await,
        time => {
            let time: DateTime<Utc> = DateTime::from_timestamp_millis(time.parse().unwrap()).unwrap();
            reader.get_offset(OffsetAt::Timestamp(time)).await
        }
    }
}

async fn consume(client: &Client, given: &Value) -> Outcome {
    let ended = input_end();
    let mut readers = Vec::new();
    for partition in 0..number(given, "partitions") as i32 {
        let reader = partition_client(client, given, partition).await?;
        let start = start_of(&reader, given).await?;
        readers.push((reader, start));
    }
    tell(json!({"event": "ready"}));
    let mut left = number(given, "count");
    while left > 0 && !ended.load(Ordering::SeqCst) {
        for (reader, next) in &mut readers {
            let (records, _) = reader.fetch_records(*next, 1..1_000_000, 50).await?;
            for each in records {
                tell_record(reader.partition(), each.offset, &each.record);
                *next = each.offset + 1;
                left -= 1;
            }
        }
    }
    Ok(())
}

async fn failover(client: &Client, given: &Value) -> Outcome {
    let ended = input_end();
    let mut writers = Vec::new();
    for partition in 0..number(given, "partitions") as i32 {
        writers.push(Arc::new(partition_client(client, given, partition).await?));
    }
    let mut open = Vec::new();
    for n in 0.. {
        if ended.load(Ordering::SeqCst) {
            break;
        }
        let writer = writers[n % writers.len()].clone();
        open.push(tokio::spawn(async move {
            let line = json!({"key": null, "value": n.to_string(), "headers": [], "timestamp": Utc::now().timestamp_millis()});
            match writer.produce(vec![record(&line)], Compression::NoCompression).await {
                Ok(_) => tell(json!({"event": "acknowledged", "n": n})),
                Err(why) => tell(json!({"event": "failed", "n": n, "error": why.to_string()})),
            }
        }));
        tokio::time::sleep(Duration::from_millis(number(given, "pause_ms") as u64)).await;
    }
    for each in open {
        each.await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let words: Vec<String> = std::env::args().collect();
    let given: Value = serde_json::from_str(&words[2])?;
    let brokers = given["bootstrap"].as_str().unwrap().split(',').map(String::from).collect();
    let client = ClientBuilder::new(brokers).build().await?;
    match words[1].as_str() {
        "topics" => topics(&client, &given).await?,
        "produce" => produce(&client, &given).await?,
        "consume" => consume(&client, &given).await?,
        "failover" => failover(&client, &given).await?,
        other => return Err(format!("no verb {other}").into()),
    }
    tell(json!({"event": "done"}));
    Ok(())
}
