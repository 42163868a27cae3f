//! Documents that a schema proposes.

use std::cell::RefCell;

use serde_json::{Map, Value, json};

/// Documents of the schema `root`: the required keys alone, and each other key beside them with each value that its schema
/// proposes (a default, an example, a name), at any depth.
pub(crate) fn of(root: &Value) -> Vec<Value> {
    Walk { root, inside: RefCell::default() }.proposed(root)
}

struct Walk<'a> {
    root: &'a Value,
    /// The lists that it is inside of: one may hold itself, as a list of error models does.
    inside: RefCell<Vec<*const Value>>,
}

impl<'a> Walk<'a> {
    /// The schema that one refers to, however often.
    fn resolved(&self, mut schema: &'a Value) -> &'a Value {
        loop {
            let reference = match (&schema["$ref"], &schema["allOf"]) {
                (Value::String(reference), _) => reference,
                (_, Value::Array(all)) => match &all[0]["$ref"] {
                    Value::String(reference) => reference,
                    _ => return schema,
                },
                _ => return schema,
            };
            schema = self.root.pointer(reference.trim_start_matches('#')).expect("a definition");
        }
    }

    /// Every value that a schema proposes; tables with their required keys.
    fn proposed(&self, schema: &'a Value) -> Vec<Value> {
        let mut values: Vec<Value> = schema.get("default").cloned().into_iter().collect();
        let own = schema["examples"].as_array();
        let schema = self.resolved(schema);
        if let Some(own) = own.filter(|_| schema["type"] == "string") {
            // The key's own, because it does not take all values of its type.
            values.extend(own.iter().cloned());
            return values;
        }
        values
            .extend(["examples", "enum"].iter().filter_map(|key| schema[key].as_array()).flatten().cloned());
        values.extend(schema.get("const").cloned());
        for choice in ["anyOf", "oneOf"].iter().filter_map(|key| schema[key].as_array()).flatten() {
            values.extend(self.proposed(choice));
        }
        if schema["type"] == "boolean" {
            values.extend([true.into(), false.into()]);
        }
        if schema["type"] == "object" || schema["properties"].is_object() {
            values.extend(self.tables(schema));
        }
        if let Some(item) = schema.get("items").filter(|item| schema["type"] == "array" && item.is_object()) {
            let place = core::ptr::from_ref(item);
            if !self.inside.borrow().contains(&place) {
                self.inside.borrow_mut().push(place);
                let count = schema["minItems"].as_u64().unwrap_or(1) as usize;
                values.extend(self.proposed(item).into_iter().map(|item| vec![item; count].into()));
                self.inside.borrow_mut().pop();
            }
        }
        values
    }

    fn tables(&self, schema: &'a Value) -> Vec<Value> {
        if let Some(each) = schema.get("additionalProperties").filter(|each| each.is_object()) {
            return self.proposed(each).into_iter().map(|value| json!({ "x": value })).collect();
        }
        let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let least: Map<String, Value> =
            required.map(|key| (key.to_owned(), self.some(&properties[key]))).collect();
        let enough = schema["minProperties"].as_u64().unwrap_or(0) <= least.len() as u64;
        let mut tables: Vec<Value> = enough.then(|| least.clone().into()).into_iter().collect();
        for (key, property) in properties {
            tables.extend(self.proposed(property).into_iter().map(|value| {
                let mut table = least.clone();
                table.insert(key.clone(), value);
                table.into()
            }));
        }
        tables
    }

    /// One value that fits a schema.
    fn some(&self, schema: &'a Value) -> Value {
        if let Some(first) = self.proposed(schema).into_iter().next() {
            return first;
        }
        let schema = self.resolved(schema);
        match schema["type"].as_str() {
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
            Some("string") => "x".into(),
            Some("array") => {
                let item = schema.get("items").filter(|item| item.is_object()).map(|item| self.some(item));
                vec![item.unwrap_or_else(|| "x".into()); schema["minItems"].as_u64().unwrap_or(1) as usize]
                    .into()
            }
            other => panic!("no sample of {other:?}: {schema}"),
        }
    }
}
