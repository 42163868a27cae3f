//! Identities and peers on the command line: keys, their public halves, and a terminal's whole configuration.

mod scratch;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use gateway::config::Config;
use scratch::Scratch;
use tunnel::key::{PresharedKey, PrivateKey};

fn longhaul(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul")).args(arguments).output().unwrap()
}

/// What it prints, where it has to succeed.
fn printed(arguments: &[&str]) -> String {
    let output = longhaul(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What it complains about, where it has to fail.
fn complaint(code: i32, arguments: &[&str]) -> String {
    let output = longhaul(arguments);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(code), &b""[..]), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_key_has_a_public_half() {
    let scratch = Scratch::new("pairs");
    let file = scratch.path("site.key");
    let told = json(&printed(&["keygen", "--json"]));
    let private: PrivateKey = told["private_key"].as_str().unwrap().parse().unwrap();
    assert_eq!(told["public_key"], private.public().to_string());
    let told = json(&printed(&["keygen", "--json", "--out", &file]));
    assert!(told["file"] == file && told.get("private_key").is_none(), "{told}");
    assert_eq!(json(&printed(&["pubkey", "--json", &file]))["public_key"], told["public_key"]);
    let mut piped = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    let mut piped = piped.arg("pubkey").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all(printed(&["keygen"]).as_bytes()).unwrap();
    assert_eq!(piped.wait_with_output().unwrap().stdout.len(), 45);

    fs::write(&file, "secret").unwrap();
    let told = complaint(2, &["pubkey", &file]);
    assert!(told.starts_with(&format!("longhaul: {file}: not a key")) && !told.contains("secret"), "{told}");
    assert!(complaint(1, &["pubkey", "/nonexistent"]).contains("/nonexistent: "));
}

#[test]
fn a_preshared_key_has_none() {
    let scratch = Scratch::new("preshared");
    let file = scratch.path("hub.psk");
    assert!(printed(&["keygen", "--preshared"]).trim().parse::<PresharedKey>().is_ok());
    let told = json(&printed(&["keygen", "--preshared", "--json"]));
    assert!(told["preshared_key"].is_string() && told.get("public_key").is_none(), "{told}");
    assert_eq!(printed(&["keygen", "--preshared", "--out", &file]), "");
    assert_eq!(mode(&file), 0o600);
    assert!(fs::read_to_string(&file).unwrap().parse::<PresharedKey>().is_ok());
}

/// A hub with no peers yet.
struct Hub {
    scratch: Scratch,
    config: String,
    public: String,
}

const HUB: &str = "[tun]\nname = \"sat0\"\naddresses = [\"10.77.0.1/24\", \"fd77::1/64\"]\nroutes = [\"10.78.0.0/16\"]\nmtu = 1380\n\
                   [carrier.udp]\nlisten = \"192.0.2.1:51900\"\n[identity]\nprivate-key-file = \"hub.key\"\n";
const ENDPOINT: [&str; 2] = ["--endpoint", "hub.example.org:7000"];

impl Hub {
    fn new() -> Self {
        let scratch = Scratch::new("hub");
        let (config, key) = (scratch.path("hub.toml"), scratch.path("hub.key"));
        let public = printed(&["keygen", "--out", &key]).trim().to_owned();
        fs::write(&config, HUB).unwrap();
        Self { scratch, config, public }
    }

    /// The arguments that add a peer.
    fn add<'a>(&'a self, name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&["peer", "add", name, "--config", &self.config], &ENDPOINT[..], more].concat()
    }

    fn check(&self) -> Output {
        longhaul(&["gateway", "--check", "--config", &self.config])
    }

    fn file(&self, name: &str) -> String {
        self.scratch.path(&format!("peers.d/{name}.toml"))
    }

    /// Everything in the directory of its peers.
    fn files(&self) -> Vec<String> {
        let Ok(listed) = fs::read_dir(self.scratch.path("peers.d")) else { return Vec::new() };
        let mut files: Vec<_> =
            listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        files
    }
}

#[test]
fn one_command_makes_both_ends() {
    let hub = Hub::new();
    let own = [
        "--address",
        "10.77.0.7/24",
        "--allowed",
        "10.78.7.0/24",
        "--route",
        "192.168.1.0/24",
        "--preshared",
    ];
    let site = printed(&hub.add("boat7", &own));
    let terminal = Config::parse("site.toml", &site).unwrap();
    let written = Config::read(Path::new(&hub.config)).unwrap();
    assert_eq!(hub.files(), ["boat7.toml"]);
    assert_eq!(mode(&hub.file("boat7")), 0o640);

    // Each knows the other, and both the same secret.
    let ([there], [here]) = (&written.peers[..], &terminal.peers[..]) else {
        panic!("one peer each: {site}")
    };
    assert_eq!((there.name(), here.name()), ("boat7", "hub"));
    assert_eq!(there.public_key, terminal.identity.load().unwrap().public());
    assert_eq!(here.public_key.to_string(), hub.public);
    let secret = there.load_preshared().unwrap();
    assert!(secret == here.load_preshared().unwrap() && secret != PresharedKey::NONE);

    let texts = |prefixes: &[base::Prefix]| prefixes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&there.allowed), ["10.78.7.0/24", "10.77.0.7/32"]);
    assert_eq!(here.allowed, base::Prefix::EVERYTHING);
    assert_eq!(texts(&terminal.tun.addresses), ["10.77.0.7/24"]);
    assert_eq!(texts(&terminal.tun.routes), ["192.168.1.0/24", "fd77::/64", "10.78.0.0/16"]);
    assert_eq!((terminal.tun.name.as_str(), terminal.tun.mtu.0), ("sat0", 1380));
    assert_eq!(here.called(&terminal.carrier).as_deref(), Some("hub.example.org:7000"));
    assert_eq!(terminal.carrier.to_string(), "0.0.0.0:51900");
    assert!(site.lines().all(|line| !line.starts_with("[link") && !line.starts_with("[pep")), "{site}");
    assert!(hub.check().status.success());
}

#[test]
fn a_peer_that_has_a_key_keeps_it() {
    let hub = Hub::new();
    let out = hub.scratch.path("boat.toml");
    let key = printed(&["keygen", "--out", &hub.scratch.path("site.key")]);
    let own = ["--address", "10.77.0.8/24", "--public-key", key.trim(), "--out", &out];
    let output = longhaul(&hub.add("boat", &own));
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        told,
        format!(
            "longhaul: {}: written; the hub takes it up when it reloads its configuration: systemctl reload, or SIGHUP\n",
            hub.file("boat")
        )
    );
    assert_eq!(mode(&out), 0o600);
    // Without the hub's peers, which lie beside it here.
    let site = Config::parse(&out, &fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(site.identity.load().unwrap().public().to_string(), key.trim());
    assert!(!fs::read_to_string(&out).unwrap().contains("private-key ="));
}

/// What both ends need alike is the hub's, and its own keys for peers count.
#[test]
fn a_terminal_speaks_the_hub_s_protocol() {
    let hub = Hub::new();
    fs::write(&hub.config, format!("{HUB}[link.protocol.cotmll]\nwindow = 99\n[pep]\nenabled = false\n"))
        .unwrap();
    let site =
        Config::parse("site.toml", &printed(&hub.add("boat", &["--address", "10.77.0.8/24"]))).unwrap();
    let written = Config::read(Path::new(&hub.config)).unwrap();
    assert_eq!(site.link.protocol.agreement(), written.link.protocol.agreement());
    assert_eq!((site.link.protocol.name(), site.pep.enabled), ("cotmll", false));
}

#[test]
fn what_does_not_fit_writes_nothing() {
    let hub = Hub::new();
    printed(&hub.add("a", &["--address", "10.77.0.7/24", "--allowed", "10.78.7.0/24"]));
    let before = fs::read_to_string(hub.file("a")).unwrap();
    let again = complaint(2, &hub.add("a", &["--address", "10.77.0.9/24"]));
    assert!(again.contains("a.toml: it exists already"), "{again}");
    let overlap = complaint(2, &hub.add("b", &["--allowed", "10.78.0.0/16"]));
    let first = hub.file("a");
    assert!(
        overlap.contains("b.toml:2: allowed") && overlap.contains(&format!("at {first}:2; allowed")),
        "{overlap}"
    );
    let none = complaint(2, &hub.add("b", &[]));
    assert!(none.contains("without --address and --allowed"), "{none}");
    let own = complaint(2, &hub.add("b", &["--address", "10.77.0.9/24", "--public-key", &hub.public]));
    assert!(own.contains("of this gateway itself"), "{own}");
    let mut family = hub.add("b", &["--address", "10.77.0.9/24"]);
    family.iter_mut().filter(|it| **it == ENDPOINT[1]).for_each(|it| *it = "[fd00::1]:7000");
    assert!(complaint(2, &family).contains("same address family"));
    assert!(
        complaint(2, &hub.add("a b", &["--address", "10.77.0.9/24"])).contains("is not a name of a peer")
    );

    // Without the one file the other is of no use.
    let out = hub.scratch.path("taken.toml");
    fs::write(&out, "mine").unwrap();
    let taken = complaint(1, &hub.add("b", &["--address", "10.77.0.9/24", "--out", &out]));
    assert!(taken.contains(&format!("{out}: ")) && fs::read_to_string(&out).unwrap() == "mine", "{taken}");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    let full = command.args(hub.add("b", &["--address", "10.77.0.9/24"])).stdout(full).output().unwrap();
    assert_eq!(full.status.code(), Some(1), "{full:?}");
    assert_eq!(hub.files(), ["a.toml"]);
    assert_eq!(fs::read_to_string(hub.file("a")).unwrap(), before);
}

#[test]
fn a_network_without_a_route_is_told() {
    let hub = Hub::new();
    let arguments = hub.add("far", &["--allowed", "10.79.0.0/16", "--allowed", "10.78.1.0/24"]);
    let told = String::from_utf8(longhaul(&arguments).stderr).unwrap();
    assert!(told.contains("no network of [tun] addresses or routes holds 10.79.0.0/16"), "{told}");
    assert!(!told.contains("10.78.1.0/24"), "{told}");
}

#[test]
fn a_check_reads_every_peer() {
    let hub = Hub::new();
    fs::create_dir(hub.scratch.path("peers.d")).unwrap();
    let checked = |text: &str| {
        fs::write(hub.file("a"), text).unwrap();
        let output = hub.check();
        let told = String::from_utf8(output.stderr).unwrap().replace(&hub.scratch.path(""), "");
        // What this host lacks is another matter.
        let of_files = told.split_inclusive('\n').filter(|line| !line.starts_with("longhaul: hub.toml: "));
        (output.status.code(), of_files.collect::<String>())
    };
    let key = "public-key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\n";
    assert_eq!(checked(key), (Some(0), String::new()));
    let (code, told) = checked(&format!("{key}weight = 0\n"));
    assert!(code == Some(2) && told.starts_with("longhaul: peers.d/a.toml:2: weight = 0: "), "{told}");
    let (code, told) = checked(&format!("{key}preshared-key-file = \"none.psk\"\n"));
    assert!(code == Some(2) && told.starts_with("longhaul: peers.d/none.psk: "), "{told}");
    let (code, told) = checked(&format!("public-key = \"{}\"\n", hub.public));
    assert!(code == Some(2) && told.contains("of this gateway itself"), "{told}");
    let secret = format!("{key}preshared-key = \"{}\"\n", printed(&["keygen", "--preshared"]).trim());
    fs::set_permissions(hub.file("a"), fs::Permissions::from_mode(0o644)).unwrap();
    let (code, told) = checked(&secret);
    assert!(code == Some(0) && told.ends_with("may have read the key; chmod o= peers.d/a.toml\n"), "{told}");
    let edge =
        "link = { protocol = { cotmll = { window = 2 } }, rate = \"1 Gbit/s\", round-trip = \"1 s\" }\n";
    let (code, told) = checked(&format!("{key}{edge}"));
    assert!(code == Some(0) && told.starts_with("longhaul: peer a: "), "{told}");
}
