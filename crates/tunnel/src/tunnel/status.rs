//! What a tunnel says about itself.

use base::{Duration, Rate};
use serde_json::{Map, Value, json};

use super::Tunnel;
use crate::splitting;
use crate::survey::mtu::PathMtu;

impl Tunnel {
    /// The status, as JSON. Rates are in bits per second, with all headers.
    #[must_use]
    pub fn status(&self) -> Value {
        let mut dropped: Map<String, Value> =
            self.rejected.iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
        dropped.insert("late".to_owned(), self.session.late.get().into());
        let entry = &self.ingress.entry;
        json!({
            "established": self.session.is_established(),
            "peer": self.session.peer().map(|peer| peer.to_string()),
            "handshakes": self.session.established,
            "protocol": self.config.link.protocol.name(),
            "traffic": self.traffic,
            "frames_cut": self.parts.cut,
            "path": self.path_status(),
            "session": dropped,
            "discarded": self.discarded,
            "link": named(self.endpoint.counters()),
            "queue": named(entry.counters()),
            "queued_bytes": entry.bytes(),
            "pep": self.ingress.proxy.as_deref().map(splitting::status),
            "once_queue": entry.once_counters().map(named),
            "interactive_queue": entry.interactive_counters().map(named),
        })
    }

    /// What was counted, by name.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, u64)> {
        let numbers = |prefix: &str, value: Value| -> Vec<(String, u64)> {
            let Value::Object(members) = value else { return Vec::new() };
            let named = |(name, value): (String, Value)| Some((format!("{prefix}{name}"), value.as_u64()?));
            members
                .into_iter()
                .filter_map(named)
                .map(|(name, count)| (name.replace('_', "-"), count))
                .collect()
        };
        let mut status = self.status();
        let parts = [
            ("traffic", ""),
            ("session", "session-"),
            ("discarded", "discarded-"),
            ("link", "link-"),
            ("queue", "queue-"),
            ("pep", "pep-"),
        ];
        let counted = parts.into_iter().flat_map(|(part, prefix)| numbers(prefix, status[part].take()));
        counted.chain([("frames-cut".to_owned(), self.parts.cut)]).collect()
    }

    fn path_status(&self) -> Value {
        let seconds = |time: Duration| time.as_secs_f64();
        json!({
            "rate": self.pacer.rate().map(Rate::as_bps),
            "carries": self.survey.rate_controller.capacity().map(Rate::as_bps),
            "experiments": self.survey.rate_controller.experiments(),
            "channel_loss": self.survey.rate_controller.channel_loss(),
            "round_trip_seconds": self.survey.round_trip().map(seconds),
            "queueing_seconds": seconds(self.survey.rate_controller.queueing()),
            "mtu": self.survey.mtu.as_ref().map(PathMtu::size),
            "mtu_reductions": self.survey.mtu.as_ref().map(|mtu| mtu.shrunk),
        })
    }
}

fn named(counters: Vec<(&'static str, u64)>) -> Map<String, Value> {
    counters.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect()
}
