//! Schemas of configuration files, for editors: JSON Schema, draft 7, which editors of TOML know best.
//!
//! Types derive theirs ([`schemars::JsonSchema`]); those that are read by hand describe themselves beside that. Here is what
//! all of them have in common: TOML has no null, and one of several tables is a table with one key.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The schema of files that are read as a `T`, under a title of theirs.
#[must_use]
pub fn of<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft07().with_transform(RecursiveTransform(as_toml));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

/// One schema, without those within it, as TOML has it.
fn as_toml(schema: &mut Schema) {
    let Some(keywords) = schema.as_object_mut() else { return };
    // A key that only the parser sees is no concern of an editor's.
    keywords.remove("writeOnly");
    if let Some(Value::String(description)) = keywords.get_mut("description") {
        *description = without_links(description);
    }
    leave_out_null(keywords);
    bound_numbers(keywords);
    join_tables(keywords);
    // What a whole table is by default would be in the way where an editor fills it in.
    if keywords.get("default").is_some_and(|value| value.is_null() || value.is_object() || value.is_array()) {
        keywords.remove("default");
    }
}

/// A documentation comment without its links to other items, which an editor cannot follow: their words stay.
fn without_links(comment: &str) -> String {
    let mut parts = comment.split("[`");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (item, rest) = part.split_once("`]").unwrap_or((part, ""));
        let target = rest.strip_prefix('(').and_then(|it| it.split_once(')'));
        text += &format!("`{item}`{}", target.map_or(rest, |(_, rest)| rest));
    }
    text
}

/// TOML leaves out what JSON calls null.
fn leave_out_null(keywords: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = keywords.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &mut types[..] {
            let only = only.take();
            keywords.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = keywords.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = keywords.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if choices.len() == 1
            && let Some(only) = keywords.remove("anyOf")
        {
            keywords.insert("allOf".to_owned(), only);
        }
    }
}

/// Says as a range what `schemars` says as the name of a Rust type.
fn bound_numbers(keywords: &mut Map<String, Value>) {
    if !keywords.get("type").is_some_and(|name| name == "integer" || name == "number") {
        return;
    }
    if keywords.remove("format").is_some_and(|format| format == "uint32") {
        keywords.entry("maximum").or_insert(u32::MAX.into());
    }
}

/// Makes of a choice between tables with one key each a table with one of these keys, so that an editor complains about what is
/// wrong within it instead of about the whole.
fn join_tables(keywords: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = keywords.get_mut("oneOf") else { return };
    let (tables, mut others): (Vec<Value>, Vec<Value>) =
        choices.drain(..).partition(|it| only_key(it).is_some());
    if tables.is_empty() {
        keywords.insert("oneOf".to_owned(), others.into());
        return;
    }
    let mut properties = Map::new();
    for mut table in tables {
        let description = table.get_mut("description").map(Value::take);
        let Some(Value::Object(own)) = table.get_mut("properties").map(Value::take) else { continue };
        for (key, value) in own {
            properties.insert(key, describe(value, description.clone()));
        }
    }
    keywords.remove("oneOf");
    if others.is_empty() {
        keywords.insert("type".to_owned(), "object".into());
    } else {
        // What follows speaks of tables only.
        others.push(json!({ "type": "object" }));
        keywords.insert("anyOf".to_owned(), others.into());
    }
    keywords.insert("properties".to_owned(), properties.into());
    keywords.insert("additionalProperties".to_owned(), false.into());
    keywords.insert("minProperties".to_owned(), 1.into());
    keywords.insert("maxProperties".to_owned(), 1.into());
}

/// The key of a table that has exactly one.
fn only_key(schema: &Value) -> Option<&str> {
    let properties = schema.get("properties")?.as_object()?;
    let (key, _) = properties.iter().next().filter(|_| properties.len() == 1)?;
    let required = schema.get("required")?.as_array()?;
    (required[..] == [key.as_str()]).then_some(key)
}

/// The schema with this description, unless it has one of its own.
fn describe(schema: Value, description: Option<Value>) -> Value {
    let Some(description) = description else { return schema };
    match schema {
        Value::Object(keywords) if keywords.contains_key("$ref") => {
            json!({ "allOf": [keywords], "description": description })
        }
        Value::Object(mut keywords) => {
            keywords.entry("description").or_insert(description);
            Value::Object(keywords)
        }
        schema => schema,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[schemars(deny_unknown_fields)]
    #[expect(dead_code)]
    struct Link {
        /// How many.
        count: Option<u32>,
        kind: Option<Kind>,
    }

    /// A kind, as [`Kind`] or [`A`](self::A).
    #[derive(JsonSchema)]
    #[expect(dead_code)]
    enum Kind {
        None,
        /// One.
        A(A),
        B {
            x: bool,
        },
    }

    #[derive(JsonSchema)]
    #[expect(dead_code)]
    struct A {
        y: f64,
    }

    #[test]
    fn a_schema_is_one_of_toml() {
        let schema = of::<Link>("a link");
        let expected = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "a link",
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "count": { "description": "How many.", "type": "integer", "minimum": 0, "maximum": u32::MAX },
                "kind": { "allOf": [{ "$ref": "#/definitions/Kind" }] },
            },
            "definitions": {
                "A": { "type": "object", "properties": { "y": { "type": "number" } }, "required": ["y"] },
                "Kind": {
                    "description": "A kind, as `Kind` or `A`.",
                    "anyOf": [{ "type": "string", "enum": ["None"] }, { "type": "object" }],
                    "additionalProperties": false,
                    "minProperties": 1,
                    "maxProperties": 1,
                    "properties": {
                        "A": { "description": "One.", "allOf": [{ "$ref": "#/definitions/A" }] },
                        "B": {
                            "type": "object", "properties": { "x": { "type": "boolean" } }, "required": ["x"]
                        },
                    },
                },
            },
        });
        assert_eq!(schema.as_value(), &expected);
    }
}
