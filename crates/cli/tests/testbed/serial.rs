//! Two gateways at the ends of a serial line.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use base::Duration;
use field::testbed::namespaces::Namespace;
use field::testbed::null_modem::NullModem;
use serde_json::Value;
use tunnel::key::PrivateKey;

use super::bench::{fresh_name, told, wait_until};

/// Two namespaces, each with a gateway and nothing else, and a line between them that carries noise now and then.
pub(crate) struct SerialSites {
    sides: [Namespace; 2],
    files: PathBuf,
    children: Vec<Child>,
    line: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

/// Bytes that are carried between two outbursts of noise.
const NOISE_EVERY: usize = 20_000;

/// Who the gateway at an end is.
fn key(end: usize) -> PrivateKey {
    PrivateKey::from_bytes([end as u8 + 1; 32])
}

impl SerialSites {
    pub(crate) fn up(protocol: &str, extra: &str, noisy: bool) -> Self {
        let name = fresh_name("serial");
        let files = std::env::temp_dir().join(format!("longhaul-{name}"));
        fs::create_dir(&files).unwrap();
        let modem = NullModem::open().unwrap();
        let mut sites = Self {
            sides: ["a", "b"].map(|side| Namespace::new(format!("{name}{side}"))),
            files,
            children: Vec::new(),
            line: None,
            stop: Arc::default(),
        };
        for (end, side) in ["a", "b"].iter().enumerate() {
            sites.sides[end].add().unwrap();
            let text = format!(
                "[tun]\nname = \"sat0\"\naddresses = [\"10.77.30.{}/30\"]\n\
                 [carrier.serial]\ndevice = {:?}\nbaud = 1000000\n{extra}\n[link]\nprotocol = \"{protocol}\"\n\
                 [identity]\nprivate-key = \"{}\"\n[[peer]]\npublic-key = \"{}\"\n",
                end + 1,
                modem.device(end),
                *key(end).to_base64(),
                key(1 - end).public(),
            );
            fs::write(sites.file(&format!("{side}.toml")), text).unwrap();
        }
        sites.line = Some(carry(modem, noisy, Arc::clone(&sites.stop)));
        for (end, side) in ["a", "b"].iter().enumerate() {
            let config = sites.file(&format!("{side}.toml"));
            let program = env!("CARGO_BIN_EXE_longhaul");
            sites.start(end, &[program, "gateway", "--config", config.to_str().unwrap()]);
        }
        wait_until("the session is established", 30, || {
            ["a", "b"].iter().all(|side| sites.status(side)["peers"][0]["state"] == "connected")
        });
        sites
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.join(name)
    }

    fn command(&self, end: usize, command: &[&str]) -> Command {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", self.sides[end].name()]).args(command);
        ip.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        ip
    }

    fn start(&mut self, end: usize, command: &[&str]) {
        self.children.push(self.command(end, command).spawn().unwrap());
    }

    /// The status of the gateway at a side; nothing while there is none.
    pub(crate) fn status(&self, side: &str) -> Value {
        told(&self.sides[usize::from(side == "b")]).unwrap_or_default()
    }

    /// Fetches a file of `len` bytes from one side to the other with stock programs, and compares.
    pub(crate) fn transfer(&mut self, len: u64) {
        let content: Vec<u8> =
            (0..len).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        fs::write(self.file("file"), &content).unwrap();
        let directory = self.files.to_str().unwrap().to_owned();
        self.start(
            1,
            &["python3", "-m", "http.server", "--bind", "10.77.30.2", "--directory", &directory, "8000"],
        );
        let fetched = self.file("fetched");
        let url = "http://10.77.30.2:8000/file";
        let curl = ["curl", "-s", "--fail", "--retry", "30", "--retry-connrefused", "--retry-delay", "1"];
        let rest = ["--max-time", "120", "-o", fetched.to_str().unwrap(), url];
        assert!(self.command(0, &[&curl[..], &rest].concat()).status().unwrap().success());
        assert!(fs::read(&fetched).unwrap() == content, "the file arrived changed");
    }
}

impl Drop for SerialSites {
    fn drop(&mut self) {
        for side in &self.sides {
            let _ = side.end_processes();
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
        self.stop.store(true, Ordering::Relaxed);
        if let Some(line) = self.line.take() {
            let _ = line.join();
        }
        for side in &self.sides {
            let _ = side.delete();
        }
        let _ = fs::remove_dir_all(&self.files);
    }
}

fn carry(mut modem: NullModem, noisy: bool, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut rng = base::Rng::named(1, "noise");
        let mut until_noise = [NOISE_EVERY; 2];
        while !stop.load(Ordering::Relaxed) {
            let carried = modem.carry(Duration::from_millis(20), |from, bytes| {
                until_noise[from] = until_noise[from].saturating_sub(bytes.len());
                if noisy && until_noise[from] == 0 && !bytes.is_empty() {
                    until_noise[from] = NOISE_EVERY;
                    // Some bytes are changed, some invented and some lost.
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1;
                    let noise = (0..rng.below(300)).map(|_| rng.bits() as u8).collect::<Vec<_>>();
                    bytes.splice(at..(at + 3).min(bytes.len()), noise);
                }
            });
            carried.unwrap();
        }
    })
}
