//! Controllers that are not of this crate, and their names in settings.

use core::fmt::{self, Debug};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Controller, Start};

/// Makes controllers that are not of this crate; [`Congestion::External`](crate::Congestion) takes one.
///
/// Two are equal if one is a clone of the other. Settings that are read know it by its name once it is
/// [registered](Factory::register).
#[derive(Clone)]
pub struct Factory {
    name: Arc<str>,
    build: Arc<Build>,
}

/// From what a controller knows when it begins to the controller.
type Build = dyn Fn(&Start) -> Box<dyn Controller> + Send + Sync;

/// The factories that settings may name, of the whole process: whoever reads settings cannot be handed anything else.
static REGISTERED: Mutex<BTreeMap<Arc<str>, Factory>> = Mutex::new(BTreeMap::new());

impl Factory {
    /// One whose controllers are called `name` in settings.
    pub fn new<C: Controller + 'static>(
        name: &str,
        build: impl Fn(&Start) -> C + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), build: Arc::new(move |start| Box::new(build(start))) }
    }

    /// What its controllers are called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets settings name it, as `congestion = { external = "name" }`; one of the same name makes room.
    pub fn register(&self) {
        let before = REGISTERED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(Arc::clone(&self.name), self.clone());
        // Not under the lock: what it owns may do anything when it goes.
        drop(before);
    }

    pub(super) fn build(&self, start: &Start) -> Box<dyn Controller> {
        (self.build)(start)
    }
}

impl Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Factory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.build, &other.build)
    }
}

impl Serialize for Factory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl<'de> Deserialize<'de> for Factory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = || all.keys().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        all.get(name.as_str()).cloned().ok_or_else(|| {
            de::Error::custom(match all.is_empty() {
                true => format!("no controller \"{name}\" is registered; Python scripts can register one"),
                false => format!("no controller \"{name}\" is registered; there are {}", known()),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Reno, build, samples};
    use super::*;
    use crate::config::{Congestion, TcpConfig};

    fn factory(name: &str, segments: u64) -> Factory {
        Factory::new(name, move |_| Reno::new(&samples::start(segments)))
    }

    #[test]
    fn only_clones_are_equal() {
        let (one, other) = (factory("own", 1), factory("own", 2));
        assert!(one == one.clone() && one != other, "a connection gets another's controller");
    }

    #[test]
    fn settings_know_what_is_registered_by_its_name() {
        let read = |text: &str| base::config::parse::<TcpConfig>("t", text);
        let text = "congestion = { external = \"three segments\" }";
        let complaint = read(text).unwrap_err().to_string();
        assert!(complaint.starts_with("t:1: ") && complaint.contains("\"three segments\""), "{complaint}");
        let three = factory("three segments", 3);
        three.register();
        let config = read(text).unwrap();
        assert_eq!(config.congestion, Congestion::External(three));
        assert_eq!(build(&config, &samples::start(10)).window(), 3 * samples::MSS);
        assert_eq!(toml::to_string(&config.congestion).unwrap(), "external = \"three segments\"\n");
        factory("three segments", 4).register();
        assert_eq!(build(&read(text).unwrap(), &samples::start(10)).window(), 4 * samples::MSS);
        assert!(read(&text.replace("three", "five")).unwrap_err().to_string().contains("\"three segments\""));
    }
}
