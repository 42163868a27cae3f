//! A status in the format of `OpenMetrics`.

use core::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use serde_json::Value;

use super::table::{Metric, Of, of_gateway, of_path, of_peer};
use crate::daemon::Status;

/// All metrics of a status that was made at `now`, in seconds since 1970.
#[must_use]
pub fn page(status: &Status, now: f64) -> String {
    let mut registry = Registry::with_prefix("longhaul");
    registry.register_collector(Box::new(Told { status: status.clone(), now }));
    let mut page = String::new();
    text::encode(&mut page, &registry).expect("a string takes everything");
    page
}

/// What a status tells.
#[derive(Debug)]
struct Told {
    status: Status,
    now: f64,
}

type Labels = Vec<(&'static str, String)>;

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let text =
            |of: &Value, path: &str| of.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let info: Labels = vec![
            ("device", text(&self.status, "/device")),
            ("public_key", text(&self.status, "/public_key")),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        let mut build = encoder.encode_descriptor("build", "What runs", None, MetricType::Info)?;
        build.encode_info(&info)?;
        for metric in of_gateway() {
            metric.encode(&mut encoder, self.now, &[(Vec::new(), &self.status)])?;
        }
        let peers = self.status["peers"].as_array().into_iter().flatten();
        let peers: Vec<(Labels, &Value)> =
            peers.map(|peer| (vec![("peer", text(peer, "/name"))], peer)).collect();
        let mut known = encoder.encode_descriptor("peer", "Who the peers are", None, MetricType::Info)?;
        for (labels, peer) in &peers {
            let keys = [("address", "/peer"), ("public_key", "/public_key"), ("protocol", "/protocol")];
            let info: Labels =
                labels.iter().cloned().chain(keys.map(|(key, path)| (key, text(peer, path)))).collect();
            known.encode_info(&info)?;
        }
        for metric in of_peer() {
            metric.encode(&mut encoder, self.now, &peers)?;
        }
        let paths: Vec<(Labels, &Value)> = peers.iter().flat_map(paths).collect();
        of_path().iter().try_for_each(|metric| metric.encode(&mut encoder, self.now, &paths))
    }
}

/// The paths of a peer, where there are several.
fn paths<'a>((labels, peer): &(Labels, &'a Value)) -> Vec<(Labels, &'a Value)> {
    let of = |path: &'a Value| {
        let name = path["name"].as_str().unwrap_or_default().to_owned();
        (labels.iter().cloned().chain([("path", name)]).collect(), path)
    };
    peer["paths"].as_array().into_iter().flatten().map(of).collect()
}

impl Metric {
    /// Tells it of each of these.
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>, now: f64, of: &[(Labels, &Value)]) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(self.name, self.help, self.unit.as_ref(), self.kind)?;
        for (labels, from) in of {
            let number = |path: &str| from.pointer(path).and_then(Value::as_f64);
            let told = match self.of {
                Of::Number(path) => number(path),
                Of::Bits(path) => number(path).map(|bits| bits / 8.0),
                Of::Is(path, wanted) => {
                    Some(f64::from(from.pointer(path).is_some_and(|text| text == wanted)))
                }
                Of::True(path) => from.pointer(path).and_then(Value::as_bool).map(f64::from),
                Of::Ago(path) => number(path).map(|ago| now - ago),
                Of::Each(path, label) => {
                    for (name, count) in from.pointer(path).and_then(Value::as_object).into_iter().flatten() {
                        // Bytes are no events, and have metrics of their own.
                        let Some(count) = count.as_f64().filter(|_| !name.starts_with("bytes")) else {
                            continue;
                        };
                        let mut labels = labels.clone();
                        labels.push((label, name.replace('-', "_")));
                        self.encode_one(metric.encode_family(&labels)?, count)?;
                    }
                    continue;
                }
            };
            if let Some(told) = told {
                match labels.is_empty() {
                    true => self.encode_one(metric.encode_family::<[(&str, &str); 0]>(&[])?, told)?,
                    false => self.encode_one(metric.encode_family(labels)?, told)?,
                }
            }
        }
        Ok(())
    }

    fn encode_one(&self, mut metric: MetricEncoder<'_>, number: f64) -> fmt::Result {
        match self.kind {
            MetricType::Counter => metric.encode_counter::<NoLabelSet, f64, f64>(&number, None),
            _ => metric.encode_gauge(&number),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_is_told_in_base_units_with_its_peers() {
        let peer = |name: &str, state: &str| {
            json!({
                "name": name, "peer": "192.0.2.1:51900", "public_key": "KEY", "protocol": "coded", "state": state,
                "heard_seconds_ago": 2.5, "handshakes": 3, "queued_bytes": 1000,
                "traffic": { "bytes_sent": 5, "bytes_received": 6, "datagrams_sent": 7 },
                "path": { "rate": 8_000_000, "carries": null, "channel_loss": 0.02, "round_trip_seconds": 0.6 },
                "queue": { "dropped-for-bytes": 4 }, "link": { "frames-repair": 9 }, "pep": null,
                "paths": if name == "hub" { json!([
                    { "name": "eth0", "is_open": true, "bytes_sent": 3, "rate": 8_000, "round_trip_seconds": 0.6 },
                    { "name": "wwan0", "is_open": false, "bytes_sent": 2, "rate": null },
                ]) } else { json!(null) },
            })
        };
        let status = json!({
            "device": "sat0", "public_key": "OWN", "uptime_seconds": 12.5, "memory_bytes": 77,
            "peers": [peer("hub", "connected"), peer("a \"b\"", "silent")],
        });
        let page = page(&status, 1000.0);
        for line in [
            "longhaul_uptime_seconds 12.5",
            "longhaul_memory_bytes 77.0",
            "longhaul_peer_connected{peer=\"hub\"} 1.0",
            "longhaul_peer_connected{peer=\"a \\\"b\\\"\"} 0.0",
            "longhaul_peer_last_heard_timestamp_seconds{peer=\"hub\"} 997.5",
            "longhaul_peer_sent_bytes_total{peer=\"hub\"} 5.0",
            "longhaul_peer_paced_rate_bytes_per_second{peer=\"hub\"} 1000000.0",
            "longhaul_peer_channel_loss_ratio{peer=\"hub\"} 0.02",
            "longhaul_peer_queue_packets_total{peer=\"hub\",event=\"dropped_for_bytes\"} 4.0",
            "longhaul_peer_link_total{peer=\"hub\",event=\"frames_repair\"} 9.0",
            "longhaul_path_open{peer=\"hub\",path=\"eth0\"} 1.0",
            "longhaul_path_open{peer=\"hub\",path=\"wwan0\"} 0.0",
            "longhaul_path_sent_bytes_total{peer=\"hub\",path=\"wwan0\"} 2.0",
            "longhaul_path_paced_rate_bytes_per_second{peer=\"hub\",path=\"eth0\"} 1000.0",
            "longhaul_path_round_trip_seconds{peer=\"hub\",path=\"eth0\"} 0.6",
        ] {
            assert!(page.lines().any(|told| told == line), "no line {line}:\n{page}");
        }
        assert!(!page.contains("longhaul_peer_path_rate_bytes_per_second{"), "what is not known is not told");
        assert!(page.contains("longhaul_peer_datagrams_total{") && !page.contains("event=\"bytes"), "{page}");
        assert!(
            page.ends_with("# EOF\n")
                && page.contains("longhaul_build_info{device=\"sat0\",public_key=\"OWN\",version=")
        );
    }

    /// Names change with the code, and what is packaged beside it has to follow.
    #[test]
    fn alerts_and_the_dashboard_ask_for_what_is_told() {
        let metrics = [of_gateway(), of_peer(), of_path()].concat();
        let names: Vec<String> = metrics
            .iter()
            .map(|metric| {
                let unit = metric.unit.as_ref().map(|unit| format!("_{}", unit.as_str())).unwrap_or_default();
                let total = if matches!(metric.kind, MetricType::Counter) { "_total" } else { "" };
                format!("longhaul_{}{unit}{total}", metric.name)
            })
            .collect();
        for text in [
            include_str!("../../../../packaging/prometheus/longhaul.rules.yml"),
            include_str!("../../../../packaging/grafana/longhaul.json"),
        ] {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with("longhaul_"));
            let asked: Vec<&str> = words.collect();
            assert!(asked.len() >= 5, "{asked:?}");
            for name in asked {
                assert!(names.iter().any(|known| known == name), "nothing tells {name}; known are {names:?}");
            }
        }
    }
}
