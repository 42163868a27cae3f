//! The schema of scenario files, and of what is laid over a scenario: any part of one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::Scenario;

/// The schema of scenario files.
#[must_use]
pub fn schema() -> Schema {
    let whole = whole();
    let mut schema = whole.clone();
    // What all schemes share.
    add_parts(&mut schema, &whole, &["name", "description", "seed", "seeds", "scheme"], Values::Written);
    schema
}

/// Names of links, traffic and nodes.
pub(super) const NAME: &str = "^[A-Za-z0-9_-]+$";

/// A part of a scenario, as a type for `#[schemars(with = …)]`; [`add_parts`] says what it is.
pub(crate) struct Part;

impl JsonSchema for Part {
    fn schema_name() -> Cow<'static, str> {
        part_of(ROOT).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

/// What the values of a part may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// Those of a scenario.
    Written,
    /// Also texts with names and expressions of a study.
    Templates,
}

fn whole() -> Schema {
    base::config::schema::of::<Scenario>("A scenario of Longhaul")
}

/// Adds the definitions of studies' parts of scenarios to `schema`, which refers to [`Part`].
pub(crate) fn add_templates(schema: &mut Schema) {
    add_parts(schema, &whole(), &["scheme"], Values::Templates);
}

/// Adds the definitions of [`Part`] to `schema`: a scenario's, `whole`, with no key required and those called `without` left out.
fn add_parts(schema: &mut Schema, whole: &Schema, without: &[&str], values: Values) {
    let parts = parts(whole, without, values);
    if let Some(definitions) = schema.get_mut("definitions").and_then(Value::as_object_mut) {
        for (name, part) in parts {
            let other = definitions.insert(name, part.clone());
            assert!(
                other.is_none_or(|other| other == part || other == json!({})),
                "two definitions with one name"
            );
        }
    }
}

/// What the definitions call the whole scenario and text with expressions.
const ROOT: &str = "Scenario";
const TEMPLATE: &str = "Template";

fn part_of(name: &str) -> String {
    format!("{name}Part")
}

fn reference(name: &str) -> String {
    format!("#/definitions/{name}")
}

/// Definitions of parts, by their names, and those that they refer to.
fn parts(whole: &Schema, without: &[&str], values: Values) -> Map<String, Value> {
    let mut root = whole.as_object().cloned().unwrap_or_default();
    let Some(Value::Object(mut definitions)) = root.remove("definitions") else { return Map::new() };
    root.retain(|key, _| !["$schema", "title"].contains(&key.as_str()));
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        properties.retain(|key, _| !without.contains(&key.as_str()));
    }
    root.insert("description".to_owned(), "Keys of a scenario, to be laid over it.".into());
    definitions.insert(ROOT.to_owned(), root.into());
    let loose: BTreeMap<&str, Value> =
        definitions.iter().map(|(name, whole)| (name.as_str(), loosened(whole.clone(), values))).collect();
    // What differs has a definition of its own, and so has what refers to it.
    let mut differ: BTreeSet<&str> = BTreeSet::from([ROOT]);
    loop {
        let refers = |part: &Value| {
            let mut found = false;
            for_each_reference(&mut part.clone(), &mut |name| found |= differ.contains(name.as_str()));
            found
        };
        let more: Vec<&str> = loose
            .iter()
            .filter(|(name, part)| !differ.contains(*name) && (definitions[**name] != **part || refers(part)))
            .map(|(name, _)| *name)
            .collect();
        if more.is_empty() {
            break;
        }
        differ.extend(more);
    }
    let mut parts = Map::new();
    let mut wanted = vec![part_of(ROOT)];
    while let Some(name) = wanted.pop() {
        if parts.contains_key(&name) {
            continue;
        }
        let mut part = match name.strip_suffix("Part").filter(|name| differ.contains(name)) {
            Some(whole) => loose[whole].clone(),
            None if name == TEMPLATE => template(),
            None => definitions[&name].clone(),
        };
        for_each_reference(&mut part, &mut |name| {
            if differ.contains(name.as_str()) {
                *name = part_of(name);
            }
            wanted.push(name.clone());
        });
        parts.insert(name, part);
    }
    parts
}

/// Calls `each` with the name of every definition that a schema refers to, and takes over what it makes of it.
fn for_each_reference(schema: &mut Value, each: &mut impl FnMut(&mut String)) {
    match schema {
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                let path = value
                    .as_str()
                    .filter(|_| keyword == "$ref")
                    .and_then(|it| it.strip_prefix("#/definitions/"));
                let Some(path) = path else {
                    for_each_reference(value, each);
                    continue;
                };
                // A short form refers to a property of a definition.
                let (name, within) =
                    path.split_once('/').map_or((path, None), |(name, rest)| (name, Some(rest)));
                let mut name = name.to_owned();
                each(&mut name);
                *value = within
                    .map_or_else(|| reference(&name), |rest| reference(&format!("{name}/{rest}")))
                    .into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_reference(item, each)),
        _ => {}
    }
}

/// A schema without required keys, in all that it holds; `values` says what the values may be.
fn loosened(mut schema: Value, values: Values) -> Value {
    let Value::Object(keywords) = &mut schema else { return schema };
    keywords.remove("required");
    for (keyword, value) in keywords.iter_mut() {
        match (keyword.as_str(), &mut *value) {
            ("properties", Value::Object(properties)) => {
                for value in properties.values_mut() {
                    *value = loosened_value(value.take(), values);
                }
            }
            ("additionalProperties" | "items", Value::Object(_)) => {
                *value = loosened_value(value.take(), values);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(choices)) => {
                for choice in choices {
                    *choice = loosened(choice.take(), values);
                }
            }
            _ => {}
        }
    }
    schema
}

/// The schema of a key's value without required keys; with [`Values::Templates`] a template is allowed too.
fn loosened_value(schema: Value, values: Values) -> Value {
    let mut schema = loosened(schema, values);
    if values == Values::Written {
        return schema;
    }
    let description = schema.as_object_mut().and_then(|keywords| keywords.remove("description"));
    let mut choice = json!({ "anyOf": [schema, { "$ref": reference(TEMPLATE) }] });
    if let Some(description) = description {
        choice["description"] = description;
    }
    choice
}

fn template() -> Value {
    json!({
        "description": "A text with names and expressions of the study in it: $name, ${expression}.",
        "type": "string",
        "pattern": r"\$",
    })
}
