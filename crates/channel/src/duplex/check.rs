//! What in a channel's path makes no sense, beyond what its types refuse.

use base::Duration;

use super::Config;
use crate::path::Jitter;

/// A key of a channel whose value makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The key, as it is written.
    pub key: &'static str,
    /// What is wrong and what is allowed; goes on after the channel's name, as in "changes its delay at 0 s; ...".
    pub message: String,
}

impl Config {
    /// Looks for what makes no sense in delays that change, jitter, largest packets and policers.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check_path(&self) -> Result<(), Complaint> {
        self.check_delay_changes()?;
        self.check_slots()?;
        for (key, jitter) in [("jitter", Some(self.jitter)), ("up-jitter", self.up_jitter)] {
            check_jitter(key, jitter.unwrap_or_default(), self.overtaking)?;
        }
        for (key, largest) in
            [("largest-packet", self.largest_packet), ("up-largest-packet", self.up_largest_packet)]
        {
            if let Some(largest) = largest
                && largest.until.is_some_and(|until| until <= largest.from)
            {
                let message = format!(
                    "has a {key} that ends at {} and starts at {}; allowed is until after from",
                    largest.until.unwrap_or_default(),
                    largest.from
                );
                return complain(key, message);
            }
        }
        for (key, policer) in [("policer", self.policer), ("up-policer", self.up_policer)] {
            if policer.is_some_and(|policer| policer.rate.as_bps() == 0 || policer.burst.0 == 0) {
                return complain(
                    key,
                    format!("has a {key} that lets nothing pass; allowed are a rate and a burst above 0"),
                );
            }
        }
        Ok(())
    }

    /// The first key of the path that is set, besides those that are `allowed`.
    #[must_use]
    pub fn path_key_besides(&self, allowed: &[&str]) -> Option<&'static str> {
        let keys = [
            ("delay-changes", !self.delay_changes.is_empty()),
            ("delay-slots", self.delay_slots.is_some()),
            ("overtaking", self.overtaking),
            ("jitter", !self.jitter.is_none()),
            ("up-jitter", self.up_jitter.is_some_and(|jitter| !jitter.is_none())),
            ("largest-packet", self.largest_packet.is_some()),
            ("up-largest-packet", self.up_largest_packet.is_some()),
            ("policer", self.policer.is_some()),
            ("up-policer", self.up_policer.is_some()),
        ];
        keys.into_iter().find(|(key, is_set)| *is_set && !allowed.contains(key)).map(|(key, _)| key)
    }

    /// The first key by which packets overtake others, if there is one.
    #[must_use]
    pub fn overtaking_key(&self) -> Option<&'static str> {
        let overtakes = |jitter| matches!(jitter, Some(Jitter::Overtaking { .. }));
        let keys = [
            ("overtaking", self.overtaking),
            ("jitter", overtakes(Some(self.jitter))),
            ("up-jitter", overtakes(self.up_jitter)),
        ];
        keys.into_iter().find_map(|(key, is_set)| is_set.then_some(key))
    }

    /// The first key by which the source of a packet that is too long is told so, if there is one.
    #[must_use]
    pub fn saying_key(&self) -> Option<&'static str> {
        let keys = [("largest-packet", self.largest_packet), ("up-largest-packet", self.up_largest_packet)];
        keys.into_iter().find_map(|(key, largest)| largest.is_some_and(|largest| largest.says).then_some(key))
    }

    fn check_delay_changes(&self) -> Result<(), Complaint> {
        let key = "delay-changes";
        let mut over = Duration::ZERO;
        for change in &self.delay_changes {
            if change.at < over || change.at.is_zero() {
                let message = format!(
                    "changes its delay at {}; allowed are times after 0 s, each when the change before is over",
                    change.at
                );
                return complain(key, message);
            }
            // The next one is later, even after a step.
            over =
                change.at.saturating_add(change.over).max(change.at.saturating_add(Duration::from_nanos(1)));
            check_length(key, change.delay)?;
        }
        Ok(())
    }

    fn check_slots(&self) -> Result<(), Complaint> {
        let key = "delay-slots";
        let Some(slots) = &self.delay_slots else { return Ok(()) };
        if slots.more.is_empty() || slots.gap >= slots.every.get() {
            let message = "has delay-slots that are empty or all gap; allowed are a time or more in more, and a gap \
                           shorter than every";
            return complain(key, message.to_owned());
        }
        slots.more.iter().try_for_each(|more| check_length(key, *more))
    }
}

fn check_jitter(key: &'static str, jitter: Jitter, overtaking: bool) -> Result<(), Complaint> {
    check_length(key, jitter.longest())?;
    match jitter {
        Jitter::InOrder { .. } if overtaking => complain(
            key,
            format!("has both overtaking and a {key} that keeps order; allowed is only one of them"),
        ),
        Jitter::Overtaking { from, to, .. } if from > to => complain(
            key,
            format!("has a {key} from {from} to {to}; allowed is the shortest time first, then the longest"),
        ),
        _ => Ok(()),
    }
}

/// The light takes an hour to Jupiter.
const LONGEST: Duration = Duration::from_secs(3600);

fn check_length(key: &'static str, delay: Duration) -> Result<(), Complaint> {
    if delay > LONGEST {
        return complain(key, format!("has a delay of {delay} in its {key}; allowed are delays up to 1 h"));
    }
    Ok(())
}

fn complain(key: &'static str, message: String) -> Result<(), Complaint> {
    Err(Complaint { key, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_named() {
        let check = |text: &str| {
            let text = format!("rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n{text}");
            base::config::parse::<Config>("c", &text).unwrap().check_path()
        };
        for (text, key, want) in [
            (
                "delay-changes = [{ at = \"0 s\", delay = \"1 ms\" }]",
                "delay-changes",
                "changes its delay at 0 s; allowed",
            ),
            (
                "delay-changes = [{ at = \"2 s\", delay = \"1 ms\" }, { at = \"2 s\", delay = \"2 ms\" }]",
                "delay-changes",
                "changes its delay at 2 s; allowed",
            ),
            (
                "delay-changes = [{ at = \"2 s\", delay = \"1 ms\", over = \"3 s\" }, { at = \"4 s\", delay = \"2 ms\" }]",
                "delay-changes",
                "changes its delay at 4 s; allowed",
            ),
            (
                "delay-changes = [{ at = \"2 s\", delay = \"2 h\" }]",
                "delay-changes",
                "allowed are delays up to 1 h",
            ),
            ("delay-slots = { every = \"15 s\", more = [] }", "delay-slots", "are empty or all gap"),
            (
                "delay-slots = { every = \"15 s\", more = [\"1 s\"], gap = \"15 s\" }",
                "delay-slots",
                "are empty or all gap",
            ),
            ("jitter = { in-order = { up-to = \"2 h\" } }", "jitter", "allowed are delays up to 1 h"),
            (
                "overtaking = true\nup-jitter = { in-order = { up-to = \"2 s\" } }",
                "up-jitter",
                "only one of them",
            ),
            (
                "jitter = { overtaking = { probability = 0.1, from = \"2 s\", to = \"1 s\" } }",
                "jitter",
                "from 2 s to 1 s; allowed is the shortest time first",
            ),
            (
                "largest-packet = { bytes = 1280, from = \"2 s\", until = \"2 s\" }",
                "largest-packet",
                "allowed is until after from",
            ),
            ("up-policer = { rate = \"0 bit/s\", burst = \"1 kB\" }", "up-policer", "lets nothing pass"),
            ("policer = { rate = \"1 bit/s\", burst = \"0 B\" }", "policer", "lets nothing pass"),
        ] {
            let complaint = check(text).unwrap_err();
            assert!(complaint.key == key && complaint.message.contains(want), "{text}: {complaint:?}");
        }
        for text in [
            "delay-changes = [{ at = \"2 s\", delay = \"1 ms\", over = \"3 s\" }, { at = \"5 s\", delay = \"2 ms\" }]",
            "delay-slots = { every = \"15 s\", more = [\"1 ms\", \"9 ms\"], gap = \"60 ms\" }\nup-jitter = \"none\"",
            "overtaking = true\njitter = { overtaking = { probability = 0.1, from = \"1 ms\", to = \"1 ms\" } }",
            "largest-packet = { bytes = 1280, until = \"2 s\" }\npolicer = { rate = \"1 bit/s\", burst = \"1 B\" }",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }
}
