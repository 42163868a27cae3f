//! The schema of a study's files: `experiments.toml`, files that it includes, and claims.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base::config::schema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

use super::form::StudyForm;
use super::probe::INSTRUMENT;
use crate::claims;
use crate::papers;
use crate::scenario::{Part, add_templates};

/// The schema of each of a study's files. Keys tell which of them it is.
#[must_use]
pub fn schema() -> Schema {
    let mut schema = schema::of::<AnyFile>("A file of a study of Longhaul");
    schema.remove("required");
    schema.insert("if".to_owned(), json!({ "required": ["claim"] }));
    schema.insert("then".to_owned(), json!({ "maxProperties": 1 }));
    let included = json!({ "propertyNames": { "enum": ["experiment", "figure", "table"] } });
    schema.insert("else".to_owned(), json!({ "anyOf": [{ "required": ["name", "title"] }, included] }));
    add_templates(&mut schema);
    schema
}

/// A file of a study: what it runs and draws, a file that it includes, or its claims.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct AnyFile {
    #[schemars(flatten)]
    study: StudyForm,
    #[schemars(flatten)]
    claims: claims::File,
}

/// The name of a probe: of the instrument's, or of one of a paper's own.
pub(super) struct ProbeName;

impl JsonSchema for ProbeName {
    fn schema_name() -> Cow<'static, str> {
        "Probe".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let probes = INSTRUMENT.iter().chain(papers::ALL.iter().flat_map(|paper| paper.probes));
        let names: Vec<&str> = probes.map(|probe| probe.name).collect();
        json_schema!({ "description": "What is measured.", "type": "string", "enum": names })
    }
}

/// A number, a text or a truth value.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Value")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum Plain {
    Number(f64),
    Text(String),
    Truth(bool),
}

/// A number, or an expression for one.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum Number {
    Number(f64),
    Expression(String),
}

/// Whether something is so, or an expression for that.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum Flag {
    Truth(bool),
    Expression(String),
}

/// A value, or several.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum Choice {
    One(Plain),
    Several(Vec<Plain>),
}

/// Values: a list, or a table of labels and the keys that each sets.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum Labels {
    List(#[schemars(length(min = 1))] Vec<Plain>),
    Sets(BTreeMap<String, Part>),
}

/// An axis, or the name of one of the study's.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum SharedAxis {
    Named(String),
    Own(Labels),
}

/// A quantity or an expression, or several, by the name of their column.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum Columns {
    One(String),
    Several(BTreeMap<String, String>),
}

pub(super) type Axes = BTreeMap<String, Labels>;
pub(super) type SharedAxes = BTreeMap<String, SharedAxis>;
pub(super) type Choices = BTreeMap<String, Choice>;
pub(super) type Constants = BTreeMap<String, Choice>;
pub(super) type Numbers = BTreeMap<String, Number>;
pub(super) type Coordinates = BTreeMap<String, Plain>;
