//! Named settings: the TCPs of the papers, of today's Linux and of the RFCs. Their data are in `presets/`.

use base::config::Presets;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::TcpConfig;

/// The presets of [`TcpConfig`].
pub const PRESETS: Presets = Presets(&[
    ("reference", include_str!("../../presets/reference.toml")),
    ("enhanced", include_str!("../../presets/enhanced.toml")),
    ("enhanced-cbi", include_str!("../../presets/enhanced-cbi.toml")),
    ("enhanced-no-daass", include_str!("../../presets/enhanced-no-daass.toml")),
    ("linux-2.4", include_str!("../../presets/linux-2.4.toml")),
    ("linux", include_str!("../../presets/linux.toml")),
    ("rfc", include_str!("../../presets/rfc.toml")),
]);

impl TcpConfig {
    /// The preset with this name, one of [`PRESETS`], if there is one.
    ///
    /// # Panics
    /// If the preset's data are broken.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let table = PRESETS.table(name)?;
        // The derived reading, for the table is whole.
        Some(Self::deserialize(table).unwrap_or_else(|error| panic!("preset {name}: {error}")))
    }
}

impl<'de> Deserialize<'de> for TcpConfig {
    /// The key `preset` names what the keys that the table lacks are taken from.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(PRESETS.beneath(deserializer))
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
        Congestion, DelayedAcks, ForwardRto, InitialWindow, Recovery, ReduceFrom, Reduction, RtoEstimator,
        SpuriousResponse,
    };
    use base::Duration;
    use base::config;

    fn preset(name: &str) -> TcpConfig {
        TcpConfig::preset(name).expect("a preset")
    }

    #[test]
    fn every_preset_reads() {
        for name in PRESETS.names() {
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
            (reference.initial_window, enhanced.initial_window),
            (InitialWindow::Segments(1), InitialWindow::Segments(4))
        );
        assert_eq!((reference.window_scaling, enhanced.window_scaling), (false, true));
        assert_eq!((reference.recovery.uses_sack(), enhanced.recovery.uses_sack()), (false, true));
        assert_eq!((reference.limited_transmit, enhanced.limited_transmit), (false, true));
        assert_eq!(
            (reference.delayed_acks, enhanced.delayed_acks),
            (DelayedAcks::On, DelayedAcks::AfterSlowStart)
        );
        for config in [&reference, &enhanced] {
            assert_eq!(config.delayed_ack_timeout, Duration::from_millis(200));
            assert_eq!((config.mss, config.timestamps), (Some(1410), false));
            assert_eq!(config.initial_rto, Duration::from_secs(3));
        }
    }

    #[test]
    fn enhanceds_variants_differ_in_one_thing() {
        let enhanced = preset("enhanced");
        let no_daass = TcpConfig { delayed_acks: DelayedAcks::On, ..enhanced.clone() };
        assert_eq!(preset("enhanced-no-daass"), no_daass);
        let cbi = TcpConfig { sharing: crate::ensemble::Sharing::Cache, ..enhanced };
        assert_eq!(preset("enhanced-cbi"), cbi);
    }

    /// Sarolahti and Kuznetsov 2002: what sets 2.4 apart from what the RFCs say, and what came after it.
    #[test]
    fn linux_2_4_is_the_kernel_of_its_day() {
        let config = preset("linux-2.4");
        assert_eq!((config.recovery, config.reduction), (Recovery::Fack, Reduction::RateHalving));
        assert_eq!((config.f_rto, config.eifel_detection), (ForwardRto::Off, true));
        assert_eq!(config.spurious_response, SpuriousResponse::Eifel);
        assert_eq!((config.congestion, config.reduce_from), (Congestion::Reno, ReduceFrom::Cwnd));
        assert_eq!(config.initial_window, InitialWindow::Segments(2));
        assert_eq!(config.delayed_acks, DelayedAcks::QuickAcks);
        let timers = [config.initial_rto, config.min_rto, config.max_rto].map(Duration::as_millis);
        assert_eq!((timers, config.rto_estimator), ([3000, 200, 120_000], RtoEstimator::Linux));
        assert_eq!((config.timestamps, config.window_scaling), (true, true));
        assert_eq!(config.receive_buffer.0, 65_535);
    }

    #[test]
    fn own_keys_go_before_the_presets() {
        let text = "congestion = \"reno\"\npreset = \"linux\"\nmin-rto = \"1 s\"";
        let read: TcpConfig = config::parse("t", text).unwrap();
        assert_eq!((read.congestion, read.recovery), (Congestion::Reno, Recovery::Rack));
        assert_eq!(read.min_rto, Duration::from_secs(1));
        let rest = TcpConfig { congestion: Congestion::Cubic, min_rto: Duration::from_millis(200), ..read };
        assert_eq!(rest, preset("linux"));
    }

    #[test]
    fn complaints_keep_their_place_beside_a_preset() {
        for (text, complaint) in [
            (
                "preset = \"solaris\"",
                "t:1: preset = \"solaris\": no preset \"solaris\"; allowed are \"reference\", \"enhanced\", \
                 \"enhanced-cbi\", \"enhanced-no-daass\", \"linux-2.4\", \"linux\", \"rfc\"",
            ),
            ("preset = \"linux\"\nmss = 10", "t:2: mss = 10: an MSS of 10 bytes; allowed are 64 to 65495"),
        ] {
            assert_eq!(config::parse::<TcpConfig>("t", text).unwrap_err().to_string(), complaint);
        }
    }

    /// What is stored with results names no preset and reads as the same.
    #[test]
    fn a_preset_is_stored_as_all_its_keys() {
        for name in PRESETS.names() {
            let stored = toml::to_string(&preset(name)).unwrap();
            assert!(!stored.contains("preset"), "{stored}");
            assert_eq!(config::parse::<TcpConfig>("t", &stored), Ok(preset(name)));
        }
    }
}
