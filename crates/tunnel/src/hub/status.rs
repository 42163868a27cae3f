//! What a hub says about itself; what a tunnel says is its own.

use serde_json::{Map, Value, json};

use super::Hub;

impl Hub {
    /// What concerns no single peer, as JSON.
    #[must_use]
    pub fn status(&self) -> Value {
        let refused: Map<String, Value> =
            self.rejected.iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
        json!({
            "public_key": self.public,
            "refused": refused,
            "traffic": self.traffic,
            "memory_bytes": self.memory.used(),
        })
    }

    /// What was counted, by name, that concerns no single peer.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, u64)> {
        let refused = self.rejected.iter().map(|(name, count)| (format!("refused-{name}"), count));
        let traffic = [
            ("packets-without-peer", self.traffic.packets_without_peer),
            ("packets-without-memory", self.traffic.packets_without_memory),
            ("packets-from-elsewhere", self.traffic.packets_from_elsewhere),
            ("challenges-sent", self.traffic.challenges_sent),
        ];
        let traffic = traffic.map(|(name, counter)| (name.to_owned(), counter.get()));
        refused.map(|(name, count)| (name.replace('_', "-"), count)).chain(traffic).collect()
    }
}
