//! Events as a table for other programs: a row each, with the fields that `docs/events.md` names as columns, and units in their names.

use serde_json::Value as Json;

use super::{Event, EventLog, What};
use crate::table::{Field, Table};

impl EventLog {
    /// The events that `keeps` chooses by place and kind, as a table of `time_s`, `place`, `event` and whatever fields they have.
    ///
    /// # Panics
    /// Never: events are numbers, texts and lists.
    #[must_use]
    pub fn table(&self, keeps: impl Fn(&str, &str) -> bool) -> Table {
        let mut table = Table::new(["time_s", "place", "event"].map(str::to_owned));
        for event in self.events() {
            let Json::Object(fields) = serde_json::to_value(&event.what).expect("events can be written")
            else {
                continue;
            };
            let kind = fields.get("event").and_then(Json::as_str).unwrap_or_default();
            if keeps(self.place_name(event.place), kind) {
                self.add(&mut table, event, kind, &fields);
            }
        }
        table
    }

    fn add(&self, table: &mut Table, event: &Event, kind: &str, fields: &serde_json::Map<String, Json>) {
        table.begin_row();
        table.set("time_s", Field::Number(event.at.as_secs_f64()));
        table.set("place", self.place_name(event.place).into());
        table.set("event", kind.into());
        debug_assert!(What::KINDS.contains(&kind), "{kind} is not among the kinds");
        for (key, value) in fields.iter().filter(|(key, _)| *key != "event") {
            match value {
                Json::Object(inner) => {
                    for (part, value) in inner {
                        table.set(&format!("{key}_{part}"), field(value, false));
                    }
                }
                value => {
                    let (name, is_time) = column(kind, key);
                    table.set(name, field(value, is_time));
                }
            }
        }
    }
}

/// What the column of a field is called, and whether it holds a time.
fn column<'a>(kind: &str, key: &'a str) -> (&'a str, bool) {
    let is_frame = kind.starts_with("frame");
    match key {
        "from" if is_frame => ("starts_s", true),
        "to" if is_frame => ("ends_s", true),
        "arrives_at" => ("arrives_s", true),
        "srtt" => ("srtt_s", true),
        "rttvar" => ("rttvar_s", true),
        "rto" => ("rto_s", true),
        "from" => ("from_port", false),
        "to" => ("to_port", false),
        "cwnd" => ("cwnd_bytes", false),
        "ssthresh" => ("ssthresh_bytes", false),
        "flight_size" => ("flight_size_bytes", false),
        "len" => ("len_bytes", false),
        other => (other, false),
    }
}

fn field(value: &Json, is_time: bool) -> Field {
    match value {
        Json::Null => Field::Nothing,
        Json::Bool(truth) => Field::Truth(*truth),
        Json::Number(number) => match number.as_u64() {
            Some(nanos) if is_time => Field::Number(nanos as f64 / 1e9),
            Some(whole) => Field::Whole(whole),
            None => Field::from(number.as_f64()),
        },
        Json::String(text) => Field::Text(text.clone()),
        Json::Array(items) if items.is_empty() => Field::Nothing,
        list => Field::Text(list.to_string()),
    }
}
