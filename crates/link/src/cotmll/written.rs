//! What a file says about `cotmll`, before it is known which format that means.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::limit::Limit;

use super::wide;
use super::{Acknowledge, Config, FlagAgainst, GapOpensWith, MAX_SESSIONS, Persistence, ToldBlock};
use crate::arq::{MAX_WINDOW, Order};

/// The two formats of COTMLL: `sequence = "thesis"` or `"wide"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sequence {
    /// Numbers of 10 bits (Faulkner 2004, 2.3).
    Thesis,
    /// Numbers of 24 bits.
    Wide,
}

/// The keys of both formats.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct Written {
    sequence: Option<Sequence>,
    window: Option<Limit<1, MAX_WINDOW, 512>>,
    ordered: Option<Order>,
    frame_payload: Option<Limit<1, 65_000, 487>>,
    persistence: Option<Persistence>,
    attempts: Option<Limit<1, 1_000_000, 10>>,
    flag_against: Option<FlagAgainst>,
    acknowledge: Option<Acknowledge>,
    block: Option<ToldBlock>,
    gap_opens_with: Option<GapOpensWith>,
    sessions: Option<Limit<1, MAX_SESSIONS, 1>>,
    session_queue: Option<Limit<1, 65_536, 100>>,
}

/// Keys that do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Contradiction {
    /// A key that only the thesis's format has.
    #[error("{0} needs sequence = \"thesis\"; with \"wide\", allowed are window, ordered and frame-payload")]
    NotWide(&'static str),
    /// More frames than the thesis's numbers tell apart.
    #[error("{0} is out of range; allowed are 1 to 512, or more with sequence = \"wide\"")]
    Window(u32),
    /// An order that the thesis's frames cannot express.
    #[error("ordered = \"flow\" needs sequence = \"wide\"; with \"thesis\", allowed are true and false")]
    FlowOrder,
}

impl Written {
    /// The format, `otherwise` where the file names none.
    pub(crate) fn sequence(&self, otherwise: Sequence) -> Sequence {
        self.sequence.unwrap_or(otherwise)
    }

    /// The parameters of the thesis's format.
    pub(crate) fn thesis(self) -> Result<Config, Contradiction> {
        let default = Config::default();
        let window = match self.window {
            Some(window) => window.get().try_into().map_err(|_| Contradiction::Window(window.get()))?,
            None => default.window,
        };
        let ordered = match self.ordered {
            Some(Order::Flow) => return Err(Contradiction::FlowOrder),
            Some(order) => order == Order::Link,
            None => default.ordered,
        };
        Ok(Config {
            window,
            ordered,
            frame_payload: self.frame_payload.unwrap_or_default(),
            persistence: self.persistence,
            attempts: self.attempts,
            flag_against: self.flag_against.unwrap_or_default(),
            acknowledge: self.acknowledge.unwrap_or_default(),
            block: self.block.unwrap_or_default(),
            gap_opens_with: self.gap_opens_with.unwrap_or_default(),
            sessions: self.sessions.unwrap_or_default(),
            session_queue: self.session_queue.unwrap_or_default(),
        })
    }

    /// The parameters of the wide format.
    pub(crate) fn wide(self) -> Result<wide::Config, Contradiction> {
        let of_the_thesis = [
            ("persistence", self.persistence.is_some()),
            ("attempts", self.attempts.is_some()),
            ("flag-against", self.flag_against.is_some()),
            ("acknowledge", self.acknowledge.is_some()),
            ("block", self.block.is_some()),
            ("gap-opens-with", self.gap_opens_with.is_some()),
            ("sessions", self.sessions.is_some()),
            ("session-queue", self.session_queue.is_some()),
        ];
        if let Some((key, _)) = of_the_thesis.into_iter().find(|(_, is_there)| *is_there) {
            return Err(Contradiction::NotWide(key));
        }
        Ok(wide::Config {
            window: self.window.map(|window| window.get().try_into().expect("the range is the same")),
            ordered: self.ordered.unwrap_or_default(),
            frame_payload: self.frame_payload,
        })
    }
}

/// What [`Written`] reads and has a meaning, `otherwise` being the format where the file names none.
pub(crate) fn schema(generator: &mut SchemaGenerator, otherwise: Sequence) -> Schema {
    let thesis = of_format(Config::json_schema(generator), Sequence::Thesis, otherwise);
    let wide = of_format(wide::Config::json_schema(generator), Sequence::Wide, otherwise);
    json_schema!({ "anyOf": [thesis, wide] })
}

/// The schema of a format's parameters, with its name among them.
fn of_format(mut parameters: Schema, sequence: Sequence, otherwise: Sequence) -> Schema {
    let name = match sequence {
        Sequence::Thesis => "thesis",
        Sequence::Wide => "wide",
    };
    if let Some(properties) = parameters.get_mut("properties") {
        properties["sequence"] = json!({ "description": "The format.", "const": name });
    }
    if sequence != otherwise {
        parameters.insert("required".to_owned(), json!(["sequence"]));
    }
    parameters
}
