//! What one transfer is: drawn from a seed and a number.

use std::fmt;
use std::sync::Arc;

use base::content::Content;
use base::units::Probability;
use base::{Duration, Rate, Rng};
use channel::{ErrorModel, line};
use field::stack::path::Impairments;
use tcp::TcpConfig;

/// One transfer.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) number: u32,
    pub(crate) ipv6: bool,
    /// Whether we open the connection.
    pub(crate) we_connect: bool,
    pub(crate) from_us: Arc<[u8]>,
    pub(crate) from_kernel: Arc<[u8]>,
    pub(crate) cut: Option<Cut>,
    pub(crate) config: TcpConfig,
    /// The text that `config` was read from.
    settings: String,
    /// We read so many bytes every so often.
    pub(crate) our_pace: Option<(usize, Duration)>,
    pub(crate) kernel: Kernel,
    /// From the kernel to us, and back.
    pub(crate) impairments: [Impairments; 2],
}

/// Which side resets the connection, after how many bytes that it received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    ByUs(usize),
    ByKernel(usize),
}

/// How the kernel's side behaves.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) scaling: bool,
    pub(crate) congestion: &'static str,
    pub(crate) receive_buffer: Option<usize>,
    pub(crate) send_buffer: Option<usize>,
    /// It reads so many bytes every so often.
    pub(crate) pace: Option<(usize, Duration)>,
}

/// Bytes that a side has to send whose connection will be cut off: more than it can get rid of before.
const ENDLESS: usize = 4 << 20;

impl Case {
    pub(crate) fn draw(seed: u64, number: u32) -> Self {
        let mut rng = Rng::named(seed, &format!("kernel case {number}"));
        let rng = &mut rng;
        let settings = our_settings(rng);
        let config: TcpConfig = base::config::parse("case", &settings).expect("settings that exist");
        let mut kernel = kernel(rng);
        let mut our_pace = pace(rng);
        let smallest = config.window.receive_buffer.0.min(kernel.receive_buffer.unwrap_or(usize::MAX) as u64);
        // About a hundred round trips at most where a window is small.
        let most = (smallest * 50).clamp(20_000, 400_000);
        let mut size = || match rng.below(8) {
            0 => 0,
            1 => 1 + rng.below(10),
            2 => rng.below(3_000.min(most)),
            _ => rng.below(most),
        };
        let mut sizes = [size() as usize, size() as usize];
        let cut = match rng.below(5) {
            0 => Some(Cut::ByUs(1 + rng.below(most) as usize)),
            1 => Some(Cut::ByKernel(1 + rng.below(most) as usize)),
            _ => None,
        };
        if cut.is_some() {
            sizes = [ENDLESS; 2];
            (kernel.pace, our_pace) = (None, None);
        }
        let content = Content::new(seed);
        let bytes = |stream: u32, len: usize| -> Arc<[u8]> {
            let mut bytes = Vec::with_capacity(len);
            while bytes.len() < len {
                bytes.extend_from_slice(content.slice(stream, bytes.len() as u64, len - bytes.len()));
            }
            bytes.into()
        };
        Self {
            seed,
            number,
            ipv6: rng.chance(0.3),
            we_connect: rng.chance(0.5),
            from_us: bytes(2 * number, sizes[0]),
            from_kernel: bytes(2 * number + 1, sizes[1]),
            cut,
            config,
            settings,
            our_pace,
            kernel,
            impairments: impairments(rng),
        }
    }
}

/// Settings of ours and what they may be, one value drawn of each.
const SETTINGS: [(&str, &[&str]); 19] = [
    ("recovery.scheme", &["\"reno\"", "\"newreno\"", "\"sack\"", "\"fack\"", "\"rack\""]),
    (
        "congestion",
        &[
            "\"reno\"",
            "\"cubic\"",
            "\"bbr\"",
            "\"vegas\"",
            "\"westwood-ere\"",
            "\"westwood-plus\"",
            "\"fast\"",
            "\"hybla\"",
        ],
    ),
    ("recovery.reduce-from", &["\"flight-size\"", "\"cwnd\""]),
    ("recovery.f-rto", &["\"off\"", "\"basic\"", "\"sack\""]),
    ("recovery.eifel-detection", &["true", "false"]),
    ("recovery.reduction", &["\"immediate\"", "\"prr\"", "\"rate-halving\""]),
    ("window.slow-start", &["\"standard\"", "\"hystart++\"", "\"hystart\""]),
    ("recovery.partial-acks", &["\"impatient\"", "\"slow-but-steady\""]),
    ("recovery.exit-window", &["\"flight-size\"", "\"ssthresh\""]),
    ("rto.estimator", &["\"rfc6298\"", "\"linux\""]),
    ("window.initial", &["1", "2", "\"rfc3390\"", "10"]),
    ("acknowledgements.delay", &["\"off\"", "\"on\"", "\"after-slow-start\"", "\"quick-acks\""]),
    ("timestamps", &["true", "false"]),
    ("window.scaling", &["true", "false"]),
    ("recovery.limited-transmit", &["true", "false"]),
    ("acknowledgements.dsack", &["true", "false"]),
    ("pacing", &["true", "false"]),
    ("recovery.ack-heuristic", &["true", "false"]),
    ("nagle", &["true", "false"]),
];

/// Our settings, as a configuration file would have them.
fn our_settings(rng: &mut Rng) -> String {
    let mut text = String::new();
    let mut set = |key: &str, value: &str| text.extend([key, " = ", value, "\n"]);
    for (key, values) in SETTINGS {
        set(key, values[rng.below(values.len() as u64) as usize]);
    }
    if rng.chance(0.3) {
        set("mss", &(200 + rng.below(1200)).to_string());
    }
    for key in ["window.receive-buffer", "window.send-buffer"] {
        if let Some(size) = buffer(rng) {
            set(key, &format!("\"{size} B\""));
        }
    }
    text
}

fn kernel(rng: &mut Rng) -> Kernel {
    let controllers = ["reno", "cubic", "bbr"];
    Kernel {
        sack: rng.chance(0.7),
        timestamps: rng.chance(0.7),
        scaling: rng.chance(0.7),
        congestion: controllers[rng.below(controllers.len() as u64) as usize],
        receive_buffer: buffer(rng).map(|size| size as usize),
        send_buffer: buffer(rng).map(|size| size as usize),
        pace: pace(rng),
    }
}

/// A small buffer, in half of the cases.
fn buffer(rng: &mut Rng) -> Option<u64> {
    rng.chance(0.5).then(|| 1_500 << rng.below(6))
}

/// A slow reader, in a quarter of the cases: 200 kB to 2 MB a second.
fn pace(rng: &mut Rng) -> Option<(usize, Duration)> {
    rng.chance(0.25).then(|| {
        let every = Duration::from_millis(1 + rng.below(50));
        ((every.as_millis() * (200 + rng.below(1800))) as usize, every)
    })
}

fn impairments(rng: &mut Rng) -> [Impairments; 2] {
    let share = |rng: &mut Rng, most: f64| {
        let share = if rng.chance(0.4) { 0.0 } else { rng.unit() * most };
        Probability::try_from(share).expect("a share of at most one")
    };
    [0, 1].map(|_| Impairments {
        line: line::Config {
            rate: Rate::from_bps(2_000_000 << rng.below(5)),
            rate_changes: Vec::new(),
            path: channel::path::Config::default(),
            delay: Duration::from_micros(rng.below(40_000)),
            errors: ErrorModel::Erasure { probability: share(rng, 0.04), changes: Vec::new() },
            errors_at: line::End::Arrival,
        },
        reordering: share(rng, 0.1),
        lateness: Duration::from_millis(1 + rng.below(30)),
        duplication: share(rng, 0.05),
    })
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("ipv6", &self.ipv6)
            .field("we_connect", &self.we_connect)
            .field("from_us", &self.from_us.len())
            .field("from_kernel", &self.from_kernel.len())
            .field("cut", &self.cut)
            .field("settings", &self.settings)
            .field("our_pace", &self.our_pace)
            .field("kernel", &self.kernel)
            .field("impairments", &self.impairments)
            .finish()
    }
}
