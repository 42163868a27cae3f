//! Which numbers of a status are told, under which names. Units are Prometheus' base units: seconds, bytes, ratios.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// A number of a status, of the whole gateway or of each peer.
#[derive(Clone, Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) unit: Option<Unit>,
    pub(super) kind: MetricType,
    pub(super) of: Of,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// The number at this path; nothing where there is none.
    Number(&'static str),
    /// Bits per second, told as bytes.
    Bits(&'static str),
    /// 1 if the text at this path is this one, else 0.
    Is(&'static str, &'static str),
    /// 1 if what is at this path is true, else 0.
    True(&'static str),
    /// Seconds since then, told as a time.
    Ago(&'static str),
    /// All numbers of the object at this path, each under its name in a label.
    Each(&'static str, &'static str),
}

fn counter(name: &'static str, unit: Option<Unit>, of: Of, help: &'static str) -> Metric {
    Metric { name, help, unit, kind: MetricType::Counter, of }
}

fn gauge(name: &'static str, unit: Option<Unit>, of: Of, help: &'static str) -> Metric {
    Metric { name, help, unit, kind: MetricType::Gauge, of }
}

/// Of the whole gateway.
pub(super) fn of_gateway() -> Vec<Metric> {
    use Of::{Each, Number};
    let (bytes, seconds) = (|| Some(Unit::Bytes), || Some(Unit::Seconds));
    vec![
        gauge("uptime", seconds(), Number("/uptime_seconds"), "Time since the gateway was started"),
        gauge(
            "memory",
            bytes(),
            Number("/memory_bytes"),
            "Memory that packets and connections of all peers take",
        ),
        counter(
            "packets",
            None,
            Each("/traffic", "event"),
            "Packets at the TUN device, and what became of those without a peer",
        ),
        counter(
            "refused",
            None,
            Each("/rejected", "reason"),
            "Datagrams and handshakes of strangers that were refused",
        ),
    ]
}

/// Of each path to a peer, where there are several.
pub(super) fn of_path() -> Vec<Metric> {
    use Of::{Bits, Number, True};
    let (bytes, seconds, ratio) =
        (|| Some(Unit::Bytes), || Some(Unit::Seconds), || Some(Unit::Other("ratio".to_owned())));
    let per_second = || Some(Unit::Other("bytes_per_second".to_owned()));
    vec![
        gauge("path_open", None, True("/is_open"), "1 while the peer is heard over the path, else 0"),
        counter("path_sent", bytes(), Number("/bytes_sent"), "Sent over the path, with all headers"),
        counter("path_sent_datagrams", None, Number("/datagrams_sent"), "Datagrams sent over the path"),
        counter(
            "path_datagrams",
            None,
            Number("/datagrams_answered"),
            "Datagrams that left over the path and of which the peer has told what arrived",
        ),
        counter("path_lost_datagrams", None, Number("/datagrams_lost"), "Those of them that did not arrive"),
        gauge("path_paced_rate", per_second(), Bits("/rate"), "What is sent over the path at most now"),
        gauge("path_rate", per_second(), Bits("/carries"), "What the path carries"),
        gauge("path_channel_loss", ratio(), Number("/channel_loss"), "What it loses besides blockages"),
        gauge("path_round_trip", seconds(), Number("/round_trip_seconds"), "Its round trip without queueing"),
        gauge("path_queueing", seconds(), Number("/queueing_seconds"), "How long packets wait on it"),
        gauge("path_mtu", bytes(), Number("/mtu"), "The largest packet that it carries"),
    ]
}

/// Of each peer.
pub(super) fn of_peer() -> Vec<Metric> {
    use Of::{Ago, Bits, Each, Is, Number};
    let (bytes, seconds, ratio) =
        (|| Some(Unit::Bytes), || Some(Unit::Seconds), || Some(Unit::Other("ratio".to_owned())));
    let per_second = || Some(Unit::Other("bytes_per_second".to_owned()));
    vec![
        gauge("peer_connected", None, Is("/state", "connected"), "Whether the peer is heard (1) or not (0)"),
        gauge(
            "peer_last_heard_timestamp",
            seconds(),
            Ago("/heard_seconds_ago"),
            "When the peer was heard last",
        ),
        counter("peer_handshakes", None, Number("/handshakes"), "Handshakes that were completed"),
        counter("peer_sent", bytes(), Number("/traffic/bytes_sent"), "Sent to the peer, with all headers"),
        counter(
            "peer_received",
            bytes(),
            Number("/traffic/bytes_received"),
            "Received from the peer, with all headers",
        ),
        counter(
            "peer_datagrams",
            None,
            Each("/traffic", "event"),
            "Datagrams to and from the peer, and what became of them",
        ),
        gauge(
            "peer_paced_rate",
            per_second(),
            Bits("/path/rate"),
            "What the gateway sends at most now, headers included",
        ),
        gauge(
            "peer_path_rate",
            per_second(),
            Bits("/path/carries"),
            "What the path to the peer carries, or all open ones together, as it was found or configured",
        ),
        counter(
            "peer_path_datagrams",
            None,
            Number("/path/datagrams_answered"),
            "Datagrams that left for the peer and of which it has told what arrived",
        ),
        counter(
            "peer_path_lost_datagrams",
            None,
            Number("/path/datagrams_lost"),
            "Those of them that did not arrive",
        ),
        gauge(
            "peer_channel_loss",
            ratio(),
            Number("/path/channel_loss"),
            "What the path loses besides blockages and full queues",
        ),
        gauge(
            "peer_round_trip",
            seconds(),
            Number("/path/round_trip_seconds"),
            "The path's round trip without queueing, or that of the nearest of several",
        ),
        gauge(
            "peer_queueing",
            seconds(),
            Number("/path/queueing_seconds"),
            "How long packets wait on the path",
        ),
        gauge(
            "peer_path_mtu",
            bytes(),
            Number("/path/mtu"),
            "The largest packet that the path carries, or each of several",
        ),
        gauge("peer_queue", bytes(), Number("/queued_bytes"), "Bytes that wait in front of the link"),
        counter(
            "peer_queue_packets",
            None,
            Each("/queue", "event"),
            "Packets that passed the queue, or were dropped from it",
        ),
        counter(
            "peer_link",
            None,
            Each("/link", "event"),
            "Frames of the link protocol by what became of them, repairs among them",
        ),
        counter(
            "peer_refused",
            None,
            Each("/session", "reason"),
            "Datagrams from the peer that were refused",
        ),
        counter(
            "peer_discarded",
            None,
            Each("/discarded", "reason"),
            "Frames from the peer that were of no use",
        ),
        gauge(
            "peer_proxy_connections",
            None,
            Each("/pep/connections", "side"),
            "Connections that the proxy has open",
        ),
        counter("peer_proxy_split", None, Number("/pep/split"), "Connections that the proxy has split"),
        counter("peer_proxy_broken", None, Number("/pep/broken"), "Connections of the proxy that broke"),
        gauge(
            "peer_proxy_memory",
            bytes(),
            Number("/pep/memory"),
            "Memory that the proxy's connections take",
        ),
    ]
}
