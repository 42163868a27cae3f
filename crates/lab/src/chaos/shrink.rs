//! A case that fails, made smaller as long as it fails in the same way.

use toml::{Table, Value};

use super::trial::{self, Fault, Verdict};

/// Runs that are tried at most.
const MOST_TRIES: usize = 200;
/// Keys without which a scenario says something else.
const KEPT: [&str; 6] = ["size", "duration", "count", "preset", "rate", "until"];

/// The smallest scenario found that fails in the same way, and how.
pub(super) fn smallest(text: String, fault: Fault, message: String) -> (String, String) {
    let Ok(mut table) = toml::from_str::<Table>(&text) else { return (text, message) };
    let (mut text, mut message, mut tries) = (text, message, 0);
    // What is left out first is what most of the rest goes with.
    while let Some(smaller) = candidates(&table).into_iter().find_map(|candidate| {
        tries += 1;
        if tries > MOST_TRIES {
            return None;
        }
        let written = toml::to_string(&candidate).ok()?;
        match trial::run(&written).verdict {
            Verdict::Failed(found, message) if found == fault => Some((candidate, written, message)),
            _ => None,
        }
    }) {
        (table, text, message) = smaller;
    }
    (text, message)
}

/// Everything that can be left out or made less, by itself, the largest part first.
fn candidates(table: &Table) -> Vec<Table> {
    let mut all = Vec::new();
    for section in ["traffic", "tunnel", "share", "link"] {
        let Some(parts) = table.get(section).and_then(Value::as_table) else { continue };
        for name in parts.keys() {
            all.push(changed(table, &[section, name], None));
        }
    }
    let mut paths = Vec::new();
    leaves(table, &mut Vec::new(), &mut paths);
    // Without these a flow or an impairment that ends would not, and the first preset's TCP is another than the last one's.
    let is_kept = |path: &[String]| path.last().is_some_and(|key| KEPT.contains(&key.as_str()));
    for (path, _) in paths.iter().filter(|(path, _)| path.len() > 1 && !is_kept(path)) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        all.push(changed(table, &path, None));
    }
    for (path, value) in &paths {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if let Some(less) = less(value) {
            all.push(changed(table, &path, Some(less)));
        }
    }
    all
}

/// The paths of all values within tables.
fn leaves(table: &Table, above: &mut Vec<String>, all: &mut Vec<(Vec<String>, Value)>) {
    for (key, value) in table {
        above.push(key.clone());
        if let Value::Table(inner) = value {
            // A whole table can go, and each of its values.
            all.push((above.clone(), value.clone()));
            leaves(inner, above, all);
        } else {
            all.push((above.clone(), value.clone()));
        }
        above.pop();
    }
}

/// Half of a number or quantity, while that is something; one for a count.
fn less(value: &Value) -> Option<Value> {
    match value {
        Value::Integer(number @ 2..) => Some(Value::Integer(number / 2)),
        Value::String(text) => {
            let (number, unit) = text.split_once(' ')?;
            let number: u64 = number.parse().ok().filter(|number| *number > 1)?;
            Some(Value::String(format!("{} {unit}", number / 2)))
        }
        _ => None,
    }
}

/// The table with the value at a path replaced, or without it.
fn changed(table: &Table, path: &[&str], value: Option<Value>) -> Table {
    let mut whole = table.clone();
    let Some((last, above)) = path.split_last() else { return whole };
    let mut inner = &mut whole;
    for key in above {
        match inner.get_mut(*key) {
            Some(Value::Table(next)) => inner = next,
            _ => return whole,
        }
    }
    match value {
        Some(value) => drop(inner.insert((*last).to_owned(), value)),
        None => drop(inner.remove(*last)),
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line on which nothing arrives breaks whatever goes over it: what has nothing to do with that goes.
    #[test]
    fn a_failure_is_smaller_and_still_one() {
        let text = "name = \"dead\"\nduration = \"4000 s\"\nnetwork = \"ipv6\"\n[link.sky]\nends = [\"a\", \"b\"]\n\
            [link.sky.channel]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nerrors = { erasure = { probability = 1.0 } }\n\
            jitter = { in-order = { up-to = \"5 ms\" } }\n\
            [traffic.one.bulk]\nfrom = \"a\"\nto = \"b\"\nsize = \"100 kB\"\n\
            [traffic.other.bulk]\nfrom = \"b\"\nto = \"a\"\nsize = \"100 kB\"\nconnections = 3\n";
        let Verdict::Failed(fault, message) = trial::run(text).verdict else { panic!("it held") };
        assert_eq!(fault, Fault::Broken, "{message}");
        let (small, _) = smallest(text.to_owned(), fault, message);
        let table: Table = toml::from_str(&small).unwrap();
        let channel = &table["link"]["sky"]["channel"];
        assert_eq!(table["traffic"].as_table().unwrap().len(), 1, "{small}");
        assert!(channel.get("jitter").is_none() && channel.get("errors").is_some(), "{small}");
        assert!(matches!(trial::run(&small).verdict, Verdict::Failed(Fault::Broken, _)));
        // The same line without losses.
        let held = text.replace("probability = 1.0", "probability = 0.0");
        assert!(matches!(trial::run(&held).verdict, Verdict::Held));
    }

    #[test]
    fn parts_go_and_quantities_halve() {
        let table: Table =
            toml::from_str("seed = 3\n[traffic.a.bulk]\nsize = \"10 kB\"\n[traffic.b.bulk]\nsize = \"1 kB\"")
                .unwrap();
        let all = candidates(&table);
        let without_a: Table = toml::from_str("seed = 3\n[traffic.b.bulk]\nsize = \"1 kB\"").unwrap();
        assert_eq!(all[0], without_a);
        let size = |candidate: &Table| {
            let bulk = candidate.get("traffic")?.get("a")?.get("bulk")?;
            bulk.get("size").and_then(Value::as_str).map(str::to_owned)
        };
        let halved = all.iter().filter(|candidate| size(candidate).as_deref() == Some("5 kB"));
        assert_eq!(halved.count(), 1);
        // Without its size the transfer would be another one.
        assert!(all.iter().all(|candidate| size(candidate).is_some()
            || candidate["traffic"].get("a").is_none_or(|a| a.get("bulk").is_none())));
    }
}
