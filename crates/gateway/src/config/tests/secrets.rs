//! Keys in files, and peers in files of their own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use tunnel::key::{PresharedKey, PrivateKey};
use zeroize::{Zeroize as _, Zeroizing};

use super::*;

/// A directory that goes away with its value.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("longhaul-config-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join(PEER_DIRECTORY)).unwrap();
        Self(path)
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.0.join(file);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        path
    }

    fn read(&self) -> Result<Config, String> {
        let whole = |error: ConfigError| error.to_string().replace(&format!("{}/", self.0.display()), "");
        Config::read(&self.0.join("site.toml")).map_err(whole)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// RFC 7748, 6.1: Alice's private key.
const PRIVATE: &str = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";

fn site(identity: &str) -> String {
    let (before, _) = SITE.split_once("private-key").unwrap();
    format!("{before}{identity}\n")
}

#[test]
fn files_beside_the_configuration_are_a_peer_each() {
    let directory = Directory::new("peers");
    directory.write("site.toml", &site("private-key-file = \"site.key\""));
    directory.write("site.key", PRIVATE);
    assert!(directory.read().unwrap().peers.is_empty());
    directory.write("peers.d/b.toml", &format!("public-key = \"{OTHER}\"\n"));
    let alone = directory.read().unwrap();
    assert_eq!((alone.peers[0].name(), &alone.peers[0].allowed[..]), ("b", &Prefix::EVERYTHING[..]));
    directory.write(
        "peers.d/b.toml",
        &format!("public-key = \"{OTHER}\"\nallowed = [\"10.2.0.0/16\"]\nlink.rate = \"max\"\n"),
    );
    let first = format!("name = \"first\"\npublic-key = \"{PUBLIC}\"\nallowed = [\"10.1.0.0/16\"]\n");
    let first = directory.write("peers.d/a.toml", &first);
    // Neither what an editor keeps there nor anything else is a peer.
    for other in [".a.toml", "a.toml~", "a.toml.old", "README"] {
        directory.write(&format!("peers.d/{other}"), "?");
    }
    let config = directory.read().unwrap();
    let names: Vec<_> = config.peers.iter().map(Peer::name).collect();
    assert_eq!(names, ["first", "b"]);
    assert_eq!((&config.peers[0].origin, config.peers[1].link.rate), (&first, LinkRate::Max));

    let inline = format!("[[peer]]\nname = \"b\"\npublic-key = \"{OTHER}\"\nallowed = []\n");
    directory.write("site.toml", &(site("private-key-file = \"site.key\"") + &inline));
    let error = directory.read().unwrap_err();
    assert!(
        error.contains("peers.d/b.toml: two peers are called \"b\", the other at site.toml:13"),
        "{error}"
    );
    directory
        .write("site.toml", &(site("private-key-file = \"site.key\"") + &inline.replace("\"b\"", "\"c\"")));
    let error = directory.read().unwrap_err();
    assert!(
        error.starts_with("peers.d/b.toml:1: public-key = ") && error.contains("at site.toml:14"),
        "{error}"
    );

    directory.write("site.toml", &site("private-key-file = \"site.key\""));
    directory.write("peers.d/a.toml", "public-key = 3\n");
    let error = directory.read().unwrap_err();
    assert!(error.starts_with("peers.d/a.toml:1: public-key = 3: invalid type"), "{error}");
    directory.write("peers.d/a.toml", "# Nothing.\n");
    assert_eq!(directory.read().unwrap_err(), "peers.d/a.toml: missing key `public-key`");
    fs::remove_file(&first).unwrap();
    directory.write("peers.d/a b.toml", &format!("public-key = \"{PUBLIC}\"\nallowed = []\n"));
    let error = directory.read().unwrap_err();
    assert!(
        error.contains("peers.d/a b.toml: \"a b\" is not a name") && error.contains("rename the file"),
        "{error}"
    );
}

/// What a tool is about to write is tried first.
#[test]
fn a_peer_can_be_tried_before_it_has_a_file() {
    let directory = Directory::new("tried");
    let file = directory.write("site.toml", &site(&format!("private-key = \"{PRIVATE}\"")));
    directory.write("peers.d/a.toml", &format!("public-key = \"{OTHER}\"\nallowed = [\"10.1.0.0/16\"]\n"));
    let path = directory.0.join("peers.d/b.toml");
    let read = |text: &str| Config::read_with(&file, Some((&path, text)));
    let text = format!("public-key = \"{PUBLIC}\"\nallowed = [\"10.2.0.0/16\"]\n");
    let config = read(&text).unwrap();
    assert_eq!(config.peers.iter().map(Peer::name).collect::<Vec<_>>(), ["a", "b"]);
    let error = read(&text.replace("10.2", "10.1")).unwrap_err().to_string();
    assert!(error.contains("peers.d/b.toml:2: ") && error.contains("a.toml:2; allowed"), "{error}");
    assert_eq!(directory.read().unwrap().peers.len(), 1);
}

#[test]
fn keys_lie_beside_the_file_that_names_them() {
    let directory = Directory::new("keys");
    directory.write("site.toml", &site("private-key-file = \"site.key\""));
    directory.write("site.key", &format!("{PRIVATE}\n"));
    let secret = PresharedKey::from_bytes([7; 32]);
    directory.write("peers.d/a.psk", &secret.to_base64());
    let peer = |key: &str, psk: &str| format!("public-key = \"{key}\"\nallowed = []\n{psk}\n");
    directory.write("peers.d/a.toml", &peer(OTHER, "preshared-key-file = \"a.psk\""));
    directory.write("peers.d/b.toml", &peer(PUBLIC, ""));
    let config = directory.read().unwrap();
    let own = config.identity.load().unwrap();
    assert_eq!(own, PRIVATE.parse::<PrivateKey>().unwrap());
    assert_eq!(config.peers[0].load_preshared(), Ok(secret));
    assert_eq!(config.peers[1].load_preshared(), Ok(PresharedKey::NONE));

    // The second has this gateway's own key.
    let error = config.check_identity(own.public()).unwrap_err().to_string();
    assert!(
        error.contains("peers.d/b.toml:1: public-key = ") && error.contains("of this gateway itself"),
        "{error}"
    );
    assert_eq!(config.check_identity(PrivateKey::from_bytes([3; 32]).public()), Ok(()));

    directory.write("site.key", "c2hvcnQ=");
    assert!(config.identity.load().unwrap_err().to_string().contains("site.key: not a key: 5 bytes"));
    fs::remove_file(directory.0.join("peers.d/a.psk")).unwrap();
    assert!(config.peers[0].load_preshared().unwrap_err().to_string().contains("a.psk"));
}

#[test]
fn secrets_that_others_may_read_are_named() {
    let directory = Directory::new("exposed");
    let file = directory.write("site.toml", &site("private-key-file = \"site.key\""));
    let key = directory.write("site.key", PRIVATE);
    let psk = directory.write("a.psk", PRIVATE);
    let peer = |key: &str, psk: &str| format!("public-key = \"{key}\"\nallowed = []\n{psk}\n");
    let inline = directory.write("peers.d/b.toml", &peer(PUBLIC, &format!("preshared-key = \"{PRIVATE}\"")));
    let named = directory.write("peers.d/a.toml", &peer(OTHER, "preshared-key-file = \"../a.psk\""));
    let exposed = || {
        let config = directory.read().unwrap();
        config.exposed().into_iter().map(|path| path.canonicalize().unwrap()).collect::<Vec<_>>()
    };
    let share = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    assert!(exposed().is_empty());
    // Neither has a secret in it.
    share(&file);
    share(&named);
    assert!(exposed().is_empty());
    for path in [&inline, &psk, &key] {
        share(path);
    }
    let mut want = [&inline, &psk, &key].map(|path| path.canonicalize().unwrap());
    want.sort();
    let mut got = exposed();
    got.sort();
    assert_eq!(got, want);
    // A key in the configuration is exposed with it, and named once.
    fs::remove_file(&inline).unwrap();
    directory.write("site.toml", &site(&format!("private-key = \"{PRIVATE}\"")));
    share(&file);
    assert!(exposed().contains(&file.canonicalize().unwrap()));
}

/// Whether what `veiled` hides lies anywhere in this process's memory that can be written. Nothing here makes a copy of it.
fn is_in_memory(veiled: &[u8]) -> bool {
    let memory = fs::File::open("/proc/self/mem").unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut window = vec![0; 1 << 20];
    let mut is_found = false;
    for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
        let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let at = |hex| u64::from_str_radix(hex, 16).unwrap();
        let (mut from, to) = (at(from), at(to));
        while from < to {
            let room = window.len().min((to - from) as usize);
            let Ok(read @ 1..) = memory.read_at(&mut window[..room], from) else { break };
            let all = window[..read].windows(veiled.len());
            is_found |= all.into_iter().any(|here| here.iter().zip(veiled).all(|(a, b)| *a == !b));
            // What lies across two windows is seen in the second.
            from += (read - veiled.len().min(read - 1)) as u64;
        }
    }
    window.zeroize();
    is_found
}

/// Of a configuration with keys in it nothing but the keys themselves stays in memory.
#[test]
fn what_keys_were_read_from_is_wiped() {
    let directory = Directory::new("wiped");
    // Nowhere else in memory, not even in the program.
    let key: Zeroizing<String> = PRIVATE.chars().rev().skip(1).chain(['=']).collect::<String>().into();
    let key: Zeroizing<String> =
        PrivateKey::from_bytes(core::array::from_fn(|at| key.as_bytes()[at])).to_base64();
    let middle = &key.as_bytes()[20..40];
    let veiled: Vec<u8> = middle.iter().map(|byte| !byte).collect();
    {
        let (before, _) = SITE.split_once("private-key").unwrap();
        let mut text = Zeroizing::new(String::with_capacity(2000));
        for part in [before, "private-key = \"", &key, "\"\n"] {
            text.push_str(part);
        }
        directory.write("site.toml", &text);
    }
    assert!(is_in_memory(&veiled), "the key is still there");
    drop(key);
    assert!(!is_in_memory(&veiled), "the test itself keeps it");
    let config = directory.read().unwrap();
    let public = config.identity.load().unwrap().public();
    assert!(!is_in_memory(&veiled));
    drop(config);
    assert_eq!(directory.read().unwrap().identity.load().unwrap().public(), public);
}
