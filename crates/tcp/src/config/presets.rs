//! Named settings: the TCPs of the papers, of today's Linux and of the RFCs. Their data are in `presets/`.

use base::config::{self, Dialect, Settings};
use schemars::Schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::TcpConfig;

/// How a `[tcp]` table may be written.
pub const DIALECT: Dialect = Dialect {
    presets: &[
        ("reference", include_str!("../../presets/reference.toml")),
        ("enhanced", include_str!("../../presets/enhanced.toml")),
        ("enhanced-cbi", include_str!("../../presets/enhanced-cbi.toml")),
        ("enhanced-no-daass", include_str!("../../presets/enhanced-no-daass.toml")),
        ("linux-2.4", include_str!("../../presets/linux-2.4.toml")),
        ("linux", include_str!("../../presets/linux.toml")),
        ("rfc", include_str!("../../presets/rfc.toml")),
        ("lt-tcp", include_str!("../../presets/lt-tcp.toml")),
        ("lt-tcp-plus", include_str!("../../presets/lt-tcp-plus.toml")),
        ("proxy-lan", include_str!("../../presets/proxy-lan.toml")),
        ("proxy-link", include_str!("../../presets/proxy-link.toml")),
        ("proxy-link-lossy", include_str!("../../presets/proxy-link-lossy.toml")),
    ],
    tables: &[
        ("fec", None),
        ("recovery", Some("scheme")),
        ("window", None),
        ("acknowledgements", Some("delay")),
        ("rto", None),
        ("limits", None),
        ("sharing", Some("policy")),
    ],
    moved: &[
        ("dsack", "acknowledgements.dsack"),
        ("delayed-acks", "acknowledgements.delay"),
        ("delayed-ack-timeout", "acknowledgements.timeout"),
        ("limited-transmit", "recovery.limited-transmit"),
        ("partial-acks", "recovery.partial-acks"),
        ("exit-window", "recovery.exit-window"),
        ("ack-heuristic", "recovery.ack-heuristic"),
        ("reduction", "recovery.reduction"),
        ("reduce-from", "recovery.reduce-from"),
        ("fine-grained-expiry", "recovery.fine-grained-expiry"),
        ("f-rto", "recovery.f-rto"),
        ("eifel-detection", "recovery.eifel-detection"),
        ("spurious-response", "recovery.spurious-response"),
        ("vegas", "congestion.vegas"),
        ("fast", "congestion.fast"),
        ("hybla", "congestion.hybla"),
        ("initial-window", "window.initial"),
        ("initial-ssthresh", "window.initial-ssthresh"),
        ("slow-start", "window.slow-start"),
        ("byte-counting-limit", "window.byte-counting-limit"),
        ("idle-restart", "window.after-idle"),
        ("window-scaling", "window.scaling"),
        ("receive-buffer", "window.receive-buffer"),
        ("send-buffer", "window.send-buffer"),
        ("initial-rto", "rto.initial"),
        ("min-rto", "rto.min"),
        ("max-rto", "rto.max"),
        ("rto-margin", "rto.margin"),
        ("rto-estimator", "rto.estimator"),
        ("syn-retries", "limits.syn-retries"),
        ("data-retries", "limits.data-retries"),
        ("user-timeout", "limits.user-timeout"),
        ("time-wait", "limits.time-wait"),
        ("backlog", "limits.backlog"),
        ("ensemble", "sharing"),
    ],
};

/// Adds to the schema of a whole `[tcp]` table that keys may come from a preset, and the short forms.
pub(super) fn complete(schema: &mut Schema) {
    DIALECT.complete(schema);
}

impl TcpConfig {
    /// The preset with this name, one of those of [`DIALECT`], if there is one.
    ///
    /// # Panics
    /// If the preset's data are broken.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let table = DIALECT.preset(name)?;
        Some(config::from_table(table).unwrap_or_else(|error| panic!("preset {name}: {error}")))
    }
}

impl<'de> Deserialize<'de> for TcpConfig {
    /// The key `preset` names what the keys that the table lacks are taken from.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        config::read(deserializer)
    }
}

impl Settings for TcpConfig {
    const DIALECT: Dialect = DIALECT;

    fn read_plain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

impl Serialize for TcpConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        Congestion, CubicConfig, CubicVariant, DelayedAcks, ForwardRto, InitialWindow, Recovery, ReduceFrom,
        Reduction, RtoEstimator, SpuriousResponse,
    };
    use base::Duration;
    use base::config;

    fn preset(name: &str) -> TcpConfig {
        TcpConfig::preset(name).expect("a preset")
    }

    #[test]
    fn every_preset_reads() {
        for name in DIALECT.names() {
            let read = config::parse::<TcpConfig>("t", &format!("preset = \"{name}\""));
            assert_eq!(read, Ok(preset(name)));
        }
        assert_eq!(TcpConfig::preset("reno"), None);
    }

    /// Kojo et al. 2005, section 4, word by word.
    #[test]
    fn reference_and_enhanced_are_the_papers() {
        let (reference, enhanced) = (preset("reference"), preset("enhanced"));
        assert_eq!(
            (reference.window.initial, enhanced.window.initial),
            (InitialWindow::Segments(1), InitialWindow::Segments(4))
        );
        assert_eq!((reference.window.scaling, enhanced.window.scaling), (false, true));
        assert_eq!(
            (reference.recovery.scheme.uses_sack(), enhanced.recovery.scheme.uses_sack()),
            (false, true)
        );
        assert_eq!((reference.recovery.limited_transmit, enhanced.recovery.limited_transmit), (false, true));
        assert_eq!(
            (reference.acknowledgements.delay, enhanced.acknowledgements.delay),
            (DelayedAcks::On, DelayedAcks::AfterSlowStart)
        );
        for config in [&reference, &enhanced] {
            assert_eq!(config.acknowledgements.timeout, Duration::from_millis(200));
            assert_eq!((config.mss, config.timestamps), (Some(1410), false));
            assert_eq!(config.rto.initial, Duration::from_secs(3));
        }
    }

    #[test]
    fn enhanceds_variants_differ_in_one_thing() {
        let enhanced = preset("enhanced");
        let no_daass = enhanced.clone().with(|it| it.acknowledgements.delay = DelayedAcks::On);
        assert_eq!(preset("enhanced-no-daass"), no_daass);
        let cbi = enhanced.with(|it| it.sharing.policy = crate::ensemble::Sharing::Cache);
        assert_eq!(preset("enhanced-cbi"), cbi);
    }

    /// Sarolahti and Kuznetsov 2002: what sets 2.4 apart from what the RFCs say, and what came after it.
    #[test]
    fn linux_2_4_is_the_kernel_of_its_day() {
        let config = preset("linux-2.4");
        assert_eq!(
            (config.recovery.scheme, config.recovery.reduction),
            (Recovery::Fack, Reduction::RateHalving)
        );
        assert_eq!((config.recovery.f_rto, config.recovery.eifel_detection), (ForwardRto::Off, true));
        assert_eq!(config.recovery.spurious_response, SpuriousResponse::Undo);
        assert_eq!((config.congestion, config.recovery.reduce_from), (Congestion::Reno, ReduceFrom::Cwnd));
        assert_eq!(config.window.initial, InitialWindow::Segments(2));
        assert_eq!(config.acknowledgements.delay, DelayedAcks::QuickAcks);
        let timers = [config.rto.initial, config.rto.min, config.rto.max].map(Duration::as_millis);
        assert_eq!((timers, config.rto.estimator), ([3000, 200, 120_000], RtoEstimator::Linux));
        assert_eq!((config.timestamps, config.window.scaling), (true, true));
        assert_eq!(config.window.receive_buffer.0, 65_535);
    }

    /// Loss-Tolerant TCP as `lt-tcp-plus` codes, in the windows of `proxy-link`.
    #[test]
    fn the_lossy_links_proxy_is_a_proxy_that_codes() {
        let lossy = preset("proxy-link-lossy");
        assert_eq!((lossy.fec, lossy.ecn), (preset("lt-tcp-plus").fec, preset("lt-tcp-plus").ecn));
        let rest = lossy.with(|it| {
            it.fec = preset("proxy-link").fec;
            it.ecn = crate::config::EcnUse::Off;
            it.congestion = Congestion::Link;
            it.acknowledgements.delay = DelayedAcks::On;
        });
        assert_eq!(rest, preset("proxy-link"));
    }

    #[test]
    fn own_keys_go_before_the_presets() {
        let text = "congestion = \"reno\"\nrecovery = \"fack\"\npreset = \"linux\"\nrto.min = \"1 s\"";
        let read: TcpConfig = config::parse("t", text).unwrap();
        assert_eq!((read.congestion.clone(), read.recovery.scheme), (Congestion::Reno, Recovery::Fack));
        assert_eq!(read.rto.min, Duration::from_secs(1));
        let rest = read.with(|it| {
            it.congestion = Congestion::Cubic(CubicConfig { variant: CubicVariant::Linux });
            it.recovery.scheme = Recovery::Rack;
            it.rto.min = Duration::from_millis(200);
        });
        assert_eq!(rest, preset("linux"));
    }

    #[test]
    fn complaints_keep_their_place_beside_a_preset() {
        for (text, complaint) in [
            (
                "preset = \"solaris\"",
                "t:1: preset = \"solaris\": no preset \"solaris\"; allowed are \"reference\", \"enhanced\", \
                 \"enhanced-cbi\", \"enhanced-no-daass\", \"linux-2.4\", \"linux\", \"rfc\", \
                 \"lt-tcp\", \"lt-tcp-plus\", \"proxy-lan\", \"proxy-link\", \"proxy-link-lossy\"",
            ),
            ("preset = \"linux\"\nmss = 10", "t:2: mss = 10: an MSS of 10 bytes; allowed are 64 to 65495"),
        ] {
            assert_eq!(config::parse::<TcpConfig>("t", text).unwrap_err().to_string(), complaint);
        }
    }

    /// What is stored with results names no preset and reads as the same.
    #[test]
    fn a_preset_is_stored_as_all_its_keys() {
        for name in DIALECT.names() {
            let stored = toml::to_string(&preset(name)).unwrap();
            assert!(!stored.contains("preset"), "{stored}");
            assert_eq!(config::parse::<TcpConfig>("t", &stored), Ok(preset(name)));
        }
    }
}
