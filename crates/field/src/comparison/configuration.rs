//! What both TCPs are set to: a controller, selective acknowledgements, window scaling.

use base::config::ConfigError;
use serde::{Serialize, Serializer};
use tcp::TcpConfig;

/// The settings that are compared; all else is as today's kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Its congestion controller.
    pub controller: Controller,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Window scaling: without, no more than 64 KiB are on their way.
    pub scaling: bool,
}

/// A congestion controller that both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Reno.
    Reno,
    /// CUBIC.
    Cubic,
    /// BBR, of which ours is another version than the kernel's: not compared.
    Bbr,
}

impl Controller {
    /// Its name, the same to the kernel and to us.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

impl Configuration {
    /// All eight.
    pub const ALL: [Self; 8] = {
        const fn with(controller: Controller, sack: bool, scaling: bool) -> Configuration {
            Configuration { controller, sack, scaling }
        }
        [
            with(Controller::Reno, true, true),
            with(Controller::Reno, true, false),
            with(Controller::Reno, false, true),
            with(Controller::Reno, false, false),
            with(Controller::Cubic, true, true),
            with(Controller::Cubic, true, false),
            with(Controller::Cubic, false, true),
            with(Controller::Cubic, false, false),
        ]
    };

    /// A name such as `reno-sack-scaling` or `cubic`.
    #[must_use]
    pub fn name(&self) -> String {
        let part = |on: bool, name: &'static str| if on { name } else { "" };
        [self.controller.name(), part(self.sack, "-sack"), part(self.scaling, "-scaling")].concat()
    }

    /// The configuration of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|configuration| configuration.name() == name)
    }

    /// Parameters of the kernel, below `/proc/sys/net`; the controller is set by socket, since a namespace may choose
    /// only what the machine allows to everybody.
    pub(crate) const fn parameters(&self) -> [(&'static str, &'static str); 4] {
        const fn switch(on: bool) -> &'static str {
            if on { "1" } else { "0" }
        }
        [
            ("ipv4/tcp_sack", switch(self.sack)),
            ("ipv4/tcp_window_scaling", switch(self.scaling)),
            // As the kernel's own defaults, where this machine has others.
            ("ipv4/tcp_rmem", "4096 131072 6291456"),
            ("ipv4/tcp_wmem", "4096 16384 4194304"),
        ]
    }

    /// Ours, in the same words, with further settings, a line of TOML each.
    ///
    /// # Errors
    /// One of the `changes` is no setting, or is set already.
    pub fn tcp(&self, changes: &[String]) -> Result<TcpConfig, ConfigError> {
        base::config::parse("our settings", &format!("{}{}\n", self.table(), changes.join("\n")))
    }

    /// Ours as the lines of a `[tcp]` table.
    #[must_use]
    pub fn table(&self) -> String {
        // Without selective acknowledgements the kernel takes three duplicates for a loss, and its Reno has no HyStart.
        let recovery = if self.sack { "rack" } else { "newreno" };
        let (congestion, slow_start) = match self.controller {
            Controller::Cubic => ("{ cubic = { variant = \"linux\" } }", "hystart"),
            Controller::Reno => ("\"reno\"", "standard"),
            Controller::Bbr => ("\"bbr\"", "standard"),
        };
        format!(
            "preset = \"linux\"\nrecovery.scheme = \"{recovery}\"\ncongestion = {congestion}\nwindow.slow-start = \"{slow_start}\"\n\
             window.scaling = {}\n",
            self.scaling,
        )
    }
}

impl Serialize for Configuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_and_settings_of_its_own() {
        for (at, configuration) in Configuration::ALL.iter().enumerate() {
            assert_eq!(Configuration::named(&configuration.name()), Some(*configuration));
            let others = Configuration::ALL.iter().skip(at + 1);
            assert!(others.clone().all(|other| other.tcp(&[]) != configuration.tcp(&[])));
            assert_eq!(configuration.tcp(&[]).unwrap().recovery.scheme.uses_sack(), configuration.sack);
        }
        assert_eq!(Configuration::ALL[0].name(), "reno-sack-scaling");
        assert_eq!(Configuration::named("vegas"), None);
    }

    #[test]
    fn changes_come_on_top() {
        let tcp = |change: &str| Configuration::ALL[0].tcp(&[change.to_owned()]);
        assert!(!tcp("nagle = false").unwrap().nagle && Configuration::ALL[0].tcp(&[]).unwrap().nagle);
        assert!(tcp("cwnd = 3").is_err() && tcp("congestion = \"bbr\"").is_err());
    }
}
