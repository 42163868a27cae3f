//! A table as it is written becomes one that says all of its keys.

use toml::{Table, Value};

use super::super::document::{Key, Node, Wrong};
use super::{Dialect, KEY};

impl Dialect {
    /// Writes the short forms out, and adds what the preset that the table names says besides, or preset `otherwise`
    /// if it names none. What is no table is left to its type.
    ///
    /// # Errors
    /// A key of an earlier version, a table that is neither one nor its short form, or a preset that there is not.
    pub(super) fn write_out(self, node: &mut Node, otherwise: Option<&str>) -> Result<(), Wrong> {
        let Some(entries) = node.entries_mut() else { return Ok(()) };
        let mut below = otherwise.and_then(|name| self.preset(name));
        if let Some(place) = entries.iter().position(|(key, _)| key.name() == KEY) {
            let (_, name) = entries.remove(place);
            below = Some(self.named(&name).map_err(|wrong| wrong.in_key(KEY.to_owned()))?);
        }
        for (key, value) in &mut *entries {
            self.write_out_entry(key, value)?;
        }
        for (name, value) in below.into_iter().flatten() {
            match entries.iter_mut().find(|(key, _)| key.name() == name) {
                None => entries.push((Key::from(name), Node::from(value))),
                Some((_, own)) if self.table(&name).is_some() => lay_below(own, value),
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn write_out_entry(self, key: &Key, value: &mut Node) -> Result<(), Wrong> {
        let name = key.name();
        if let Some((_, new)) = self.moved.iter().find(|(old, _)| *old == name) {
            return Err(Wrong::about(key, &format!("`{name}` has moved; write `{new}` instead")));
        }
        let Some((_, short)) = self.table(name) else { return Ok(()) };
        if value.entries_mut().is_some() {
            return Ok(());
        }
        let wrong = match short {
            Some(short) if value.as_text().is_some() => {
                value.wrap(short);
                return Ok(());
            }
            Some(short) => value.unexpected(&&*format!("a table, or its `{short}` alone")),
            None => value.unexpected(&"a table"),
        };
        Err(wrong.in_key(name.to_owned()))
    }

    /// The preset of that name.
    fn named(self, name: &Node) -> Result<Table, Wrong> {
        let Some(text) = name.as_text() else { return Err(name.unexpected(&"a string")) };
        self.preset(text).ok_or_else(|| {
            let known: Vec<String> = self.names().map(|known| format!("\"{known}\"")).collect();
            name.refused(&format!("no preset \"{text}\"; allowed are {}", known.join(", ")))
        })
    }
}

/// Adds to a table the keys that it lacks.
fn lay_below(own: &mut Node, below: Value) {
    let (Some(entries), Value::Table(below)) = (own.entries_mut(), below) else { return };
    for (name, value) in below {
        if entries.iter().all(|(key, _)| key.name() != name) {
            entries.push((Key::from(name), Node::from(value)));
        }
    }
}
