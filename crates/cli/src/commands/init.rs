//! `longhaul init`: the configurations of both ends of a link, from three answers.

use core::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::ExitCode;

use base::Prefix;
use gateway::config::{Config, Destination};
use tunnel::key::PrivateKey;

use super::outcome::{complain, failure, misconfigured, say};
use super::{peer_files, secret};

/// Write the configurations of both ends of a link: a hub, which waits to be called, and a site, which calls it.
///
/// Asks for what no option says. Writes hub.toml and site.toml, each with its private key, readable by their owner only: copy
/// each to its machine. More sites are added at the hub, with `longhaul peer add`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul init                                      # asks three questions
  longhaul init --endpoint hub.example.org --behind-hub all
  longhaul init --endpoint 198.51.100.7:7000 --behind-hub 10.12.0.0/24 \\
    --behind-site 10.11.0.0/24 --out /etc/longhaul")]
pub(crate) struct Arguments {
    /// Where the site reaches the hub: an address or a host name, with a port if it is not 51900.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = destination)]
    endpoint: Option<Destination>,
    /// A network behind the hub that the site is to reach, or "all" for everything; may be repeated.
    #[arg(long, value_name = "PREFIX|all", value_parser = networks)]
    behind_hub: Vec<Networks>,
    /// A network behind the site, or "none" if it is a single host; may be repeated.
    #[arg(long, value_name = "PREFIX|none", value_parser = networks)]
    behind_site: Vec<Networks>,
    /// Name of the TUN device, at both ends.
    #[arg(long, value_name = "NAME", default_value = "sat0")]
    device: String,
    /// Directory for both files.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// What lies behind an end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Networks {
    All,
    None,
    One(Prefix),
}

/// The port that gateways have unless told.
const PORT: u16 = 51_900;

/// What both files follow from.
struct Plan {
    endpoint: Destination,
    device: String,
    behind_hub: Vec<Prefix>,
    behind_site: Vec<Prefix>,
    /// Of the hub and of the site within the tunnel, in both families.
    addresses: [[Prefix; 2]; 2],
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    if !args.out.is_dir() {
        return misconfigured(format_args!(
            "--out {}: there is no such directory; make it first",
            args.out.display()
        ));
    }
    let files = ["hub.toml", "site.toml"].map(|name| args.out.join(name));
    if let Some(there) = files.iter().find(|file| file.symlink_metadata().is_ok()) {
        let there = there.display();
        return misconfigured(format_args!("{there}: it exists already; choose another --out, or remove it"));
    }
    let plan = match plan(args, &mut io::stdin().lock()) {
        Ok(plan) => plan,
        Err(error) => return misconfigured(error),
    };
    let mut random = gateway::random::system();
    let keys = [(); 2].map(|()| PrivateKey::generate(&mut random));
    let texts = [plan.hub(&keys), plan.site(&keys)];
    for (file, text) in files.iter().zip(&texts) {
        if let Err(error) = Config::parse(&file.display().to_string(), text) {
            return misconfigured(error);
        }
    }
    for (number, (file, text)) in files.iter().zip(&texts).enumerate() {
        if let Err(error) = secret::write_private(file, text) {
            // One without the other is of no use.
            files[..number].iter().for_each(|written| drop(std::fs::remove_file(written)));
            return failure(format_args!("{}: {error}", file.display()));
        }
    }
    say!("{}", plan.next_steps(&files));
    ExitCode::SUCCESS
}

/// Asks for what the arguments do not say.
fn plan(args: &Arguments, input: &mut impl BufRead) -> Result<Plan, String> {
    let endpoint = match &args.endpoint {
        Some(endpoint) => endpoint.clone(),
        None => ask(
            input,
            "Where does the site reach the hub? An address or a name, with a port if it is not 51900",
            "--endpoint",
            None,
            destination,
        )?,
    };
    let behind_hub = match &args.behind_hub[..] {
        [] => ask(
            input,
            "Which networks behind the hub is the site to reach? Such as 10.12.0.0/24, or all",
            "--behind-hub",
            Some("all"),
            several,
        )?,
        given => given.to_vec(),
    };
    let behind_site = match &args.behind_site[..] {
        // Who said all the rest in options need not say that there is nothing.
        [] if args.endpoint.is_some() && !args.behind_hub.is_empty() => Vec::new(),
        [] => ask(
            input,
            "Which networks lie behind the site? Such as 10.11.0.0/24, or none for a single host",
            "--behind-site",
            Some("none"),
            several,
        )?,
        given => given.to_vec(),
    };
    if behind_site.contains(&Networks::All) {
        return Err("--behind-site all: the site sends everything to the hub, not the hub to the site; allowed are networks, or none".to_owned());
    }
    let (behind_hub, behind_site) = (prefixes(&behind_hub), prefixes(&behind_site));
    let addresses = addresses(&[&behind_hub[..], &behind_site].concat(), gateway::random::system().draw());
    Ok(Plan { endpoint, device: args.device.clone(), behind_hub, behind_site, addresses })
}

/// An answer to a question, asked until it is one; the option is for those whom nobody can ask.
fn ask<T>(
    input: &mut impl BufRead,
    question: &str,
    option: &str,
    usual: Option<&str>,
    read: fn(&str) -> Result<T, String>,
) -> Result<T, String> {
    loop {
        if io::stdin().is_terminal() {
            complain(format_args!("{question}{}:", usual.map(|it| format!(" [{it}]")).unwrap_or_default()));
        }
        let mut answer = String::new();
        let len = input.read_line(&mut answer).map_err(|error| error.to_string())?;
        let answer = match (answer.trim(), usual) {
            _ if len == 0 => return Err(format!("nobody answers: {question}? {option} says it")),
            ("", Some(usual)) => usual,
            (answer, _) => answer,
        };
        match read(answer) {
            Ok(answer) => return Ok(answer),
            Err(error) if io::stdin().is_terminal() => complain(error),
            Err(error) => return Err(error),
        }
    }
}

fn destination(text: &str) -> Result<Destination, String> {
    if text.ends_with(":0") && text.parse::<IpAddr>().is_err() {
        return Err(format!("\"{text}\": there is no port 0; allowed are 1 to 65535, or none for {PORT}"));
    }
    let with_port = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]:{PORT}"),
        Ok(IpAddr::V4(_)) => format!("{text}:{PORT}"),
        Err(_) if text.contains(':') => text.to_owned(),
        Err(_) => format!("{text}:{PORT}"),
    };
    with_port.parse()
}

fn networks(text: &str) -> Result<Networks, String> {
    match text {
        "all" => Ok(Networks::All),
        "none" => Ok(Networks::None),
        network => {
            let prefix: Prefix = network.parse().map_err(|_| {
                format!(
                    "\"{network}\" is no network; allowed are networks such as 10.12.0.0/24, all, or none"
                )
            })?;
            Ok(Networks::One(Prefix { address: prefix.masked(), len: prefix.len }))
        }
    }
}

/// Several, as somebody types them.
fn several(text: &str) -> Result<Vec<Networks>, String> {
    text.split([',', ' ']).filter(|word| !word.is_empty()).map(networks).collect()
}

fn prefixes(networks: &[Networks]) -> Vec<Prefix> {
    let of = |networks: &Networks| match networks {
        Networks::All => Prefix::EVERYTHING.to_vec(),
        Networks::None => Vec::new(),
        Networks::One(prefix) => vec![*prefix],
    };
    networks.iter().flat_map(of).collect()
}

/// A network of the tunnel's own, beside what lies behind the ends and with room for more sites: in IPv4 the first of 10.77.0.0/24,
/// 10.78.0.0/24 and so on that is free, in IPv6 a random one (RFC 4193, 3.2.2). The hub has the first address, the site the second.
fn addresses(taken: &[Prefix], random: [u8; 5]) -> [[Prefix; 2]; 2] {
    let network = |second: u8| Prefix { address: Ipv4Addr::new(10, second, 0, 0).into(), len: 24 };
    let is_free = |second: &u8| taken.iter().all(|taken| taken.len == 0 || !taken.overlaps(network(*second)));
    let second = (77..=255).find(is_free).unwrap_or(77);
    let [a, b, c, d, e] = random.map(u16::from);
    [1, 2].map(|host| {
        let v6 = Ipv6Addr::new(0xfd00 | a, b << 8 | c, d << 8 | e, 0, 0, 0, 0, u16::from(host));
        [
            Prefix { address: Ipv4Addr::new(10, second, 0, host).into(), len: 24 },
            Prefix { address: v6.into(), len: 64 },
        ]
    })
}

impl Plan {
    fn listen(&self, port: u16) -> String {
        let is_ipv6 = self.endpoint.address().is_some_and(|address| address.is_ipv6());
        format!("{}:{port}", if is_ipv6 { "[::]" } else { "0.0.0.0" })
    }

    fn hub(&self, [own, site]: &[PrivateKey; 2]) -> String {
        let host =
            |prefix: &Prefix| Prefix { len: if prefix.address.is_ipv4() { 32 } else { 128 }, ..*prefix };
        let allowed: Vec<Prefix> =
            self.addresses[1].iter().map(host).chain(self.behind_site.iter().copied()).collect();
        format!(
            "# The hub, which waits to be called. Made by `longhaul init`, as its site.toml was.\n\n{}\
             [[peer]]\nname = \"site\"\npublic-key = \"{}\"\nallowed = {}\n",
            self.common(0, &self.behind_site, self.endpoint.port(), own),
            site.public(),
            peer_files::list(&allowed),
        )
    }

    fn site(&self, [hub, own]: &[PrivateKey; 2]) -> String {
        format!(
            "# The site, which calls the hub. Made by `longhaul init`, as its hub.toml was.\n\n{}\
             [[peer]]\nname = \"hub\"\npublic-key = \"{}\"\nendpoint = \"{}\"\n",
            self.common(1, &self.behind_hub, PORT, own),
            hub.public(),
            self.endpoint,
        )
    }

    fn common(&self, end: usize, routes: &[Prefix], port: u16, key: &PrivateKey) -> String {
        let routes = if routes.is_empty() {
            String::new()
        } else {
            format!("routes = {}\n", peer_files::list(routes))
        };
        format!(
            "[tun]\nname = {}\naddresses = {}\n{routes}\n[carrier.udp]\nlisten = \"{}\"\n\n[identity]\nprivate-key = \"{}\"\n\n",
            serde_json::json!(self.device),
            peer_files::list(&self.addresses[end]),
            self.listen(port),
            *key.to_base64(),
        )
    }

    /// The command for a second site that reaches what the first does.
    fn one_more(&self) -> String {
        let [v4, v6] = self.addresses[0].map(|address| address.to_string());
        let routes: String = self.behind_hub.iter().map(|network| format!(" --route {network}")).collect();
        format!(
            "longhaul peer add NAME --config hub.toml --endpoint {} --address {} --address {}{routes} --out NAME.toml",
            self.endpoint,
            v4.replace(".0.1/", ".0.3/"),
            v6.replace("::1/", "::3/"),
        )
    }

    /// What is left to do, in commands.
    fn next_steps(&self, [hub, site]: &[PathBuf; 2]) -> String {
        let mut text = format!("written: {} and {}\n", hub.display(), site.display());
        let is_full = self.behind_hub.iter().any(|network| network.len == 0);
        for (name, far) in [("hub", &self.behind_site), ("site", &self.behind_hub)] {
            _ = write!(
                text,
                "\nat the {name}, with {name}.toml there, as root:\n  install -m 640 -g longhaul {name}.toml /etc/longhaul/    \
                 # unless it is there already\n"
            );
            let behind = if name == "hub" { &self.behind_hub } else { &self.behind_site };
            if !behind.is_empty() {
                text += "  # a host that learns its own IPv6 route from a router needs net.ipv6.conf.DEVICE.accept_ra=2 as well\n  \
                         printf '%s\\n' net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 >/etc/sysctl.d/longhaul.conf\n  \
                         sysctl -p /etc/sysctl.d/longhaul.conf\n";
            }
            if name == "hub" {
                let port = self.endpoint.port();
                _ = writeln!(
                    text,
                    "  # calls come by UDP to port {port}; where a firewall is closed: nft insert rule inet filter input udp dport {port} accept"
                );
            }
            if name == "hub" && is_full {
                let device = &self.device;
                _ = write!(
                    text,
                    "  # so that answers find back: what comes from the site leaves under the hub's own address, also after a restart\n  \
                     nft add table inet longhaul\n  \
                     nft 'add chain inet longhaul out {{ type nat hook postrouting priority srcnat; }}'\n  \
                     nft add rule inet longhaul out iifname {device} oifname != {device} masquerade\n  \
                     nft list table inet longhaul >>/etc/nftables.conf; systemctl enable nftables\n"
                );
            } else if !behind.is_empty() {
                let tunnel = Prefix { address: self.addresses[0][0].masked(), ..self.addresses[0][0] };
                let ways: Vec<String> =
                    far.iter().filter(|way| way.len > 0).chain([&tunnel]).map(ToString::to_string).collect();
                _ = writeln!(
                    text,
                    "  # hosts behind it whose router is another one need there a route to {} by this machine",
                    ways.join(", ")
                );
            }
            _ = writeln!(text, "  systemctl enable --now longhaul@{name}");
        }
        text += "\nEach file holds a private key: copy it with scp or the like, and delete it where it does not belong.\n";
        if is_full {
            _ = writeln!(
                text,
                "Answers to whoever connects to the site from outside go through the tunnel too, and are lost: administer it at {}, or keep \
                 its own\naddress out (docs/gateway.md, \"Everything through the tunnel\").",
                self.addresses[1][0].address
            );
        }
        let far = if is_full {
            "an address beyond the hub".to_owned()
        } else {
            self.addresses[0][0].address.to_string()
        };
        _ = write!(
            text,
            "Without systemd: longhaul gateway --config FILE. Then, at the site: longhaul gateway status; ping {far}\n\
             What is in the way: longhaul gateway doctor --config FILE. More sites, at the hub:\n  {}",
            self.one_more()
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn planned(options: &[&str], answers: &str) -> Result<(Config, Config), String> {
        let line = Line::try_parse_from([&["init"], options].concat()).map_err(|error| error.to_string())?;
        let plan = plan(&line.arguments, &mut answers.as_bytes())?;
        let keys = [[1; 32], [2; 32]].map(PrivateKey::from_bytes);
        let read = |text: &str| Config::parse("it", text).map_err(|error| error.to_string());
        Ok((read(&plan.hub(&keys))?, read(&plan.site(&keys))?))
    }

    fn texts(prefixes: &[Prefix]) -> Vec<String> {
        prefixes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn three_answers_make_two_files_that_fit() {
        for (options, answers) in [
            (&[][..], "hub.example.org\n10.12.0.0/24, fd12::/64\n10.11.0.9/24\n"),
            (
                &[
                    "--endpoint=hub.example.org",
                    "--behind-hub=10.12.0.0/24",
                    "--behind-hub=fd12::/64",
                    "--behind-site=10.11.0.0/24",
                ],
                "",
            ),
        ] {
            let (hub, site) = planned(options, answers).unwrap();
            assert_eq!(texts(&hub.tun.routes), ["10.11.0.0/24"]);
            assert_eq!(texts(&site.tun.routes), ["10.12.0.0/24", "fd12::/64"]);
            assert_eq!(texts(&hub.tun.addresses)[0], "10.77.0.1/24");
            assert_eq!(site.peers[0].endpoint.as_ref().unwrap().to_string(), "hub.example.org:51900");
            assert!(hub.peers[0].endpoint.is_none());
            let keys = [&hub, &site].map(|config| config.identity.load().unwrap().public());
            assert_eq!([site.peers[0].public_key, hub.peers[0].public_key], keys);
            let allowed = texts(&hub.peers[0].allowed);
            assert!(
                allowed[0] == "10.77.0.2/32"
                    && allowed[1].ends_with("::2/128")
                    && allowed[2] == "10.11.0.0/24"
            );
        }
    }

    #[test]
    fn nothing_but_an_endpoint_is_a_full_tunnel_in_both_families() {
        let (hub, site) = planned(&["--endpoint=[2001:db8::1]:7000"], "\n\n").unwrap();
        assert_eq!(texts(&site.tun.routes), ["0.0.0.0/0", "::/0"]);
        assert!(hub.tun.routes.is_empty());
        let listen = |config: &Config| match &config.carrier {
            gateway::config::Carrier::Udp(udp) => udp.listen.to_string(),
            gateway::config::Carrier::Serial(_) => unreachable!(),
        };
        assert_eq!([listen(&hub), listen(&site)], ["[::]:7000", "[::]:51900"]);
    }

    #[test]
    fn networks_of_the_tunnel_are_free() {
        let (hub, _) =
            planned(&["--endpoint=192.0.2.1", "--behind-hub=10.77.0.0/16", "--behind-site=10.78.0.0/30"], "")
                .unwrap();
        assert_eq!(texts(&hub.tun.addresses)[0], "10.79.0.1/24");
        let own = |hub: &Config| hub.tun.addresses[1].address;
        let (other, _) = planned(&["--endpoint=192.0.2.1", "--behind-hub=all"], "").unwrap();
        assert_ne!(own(&hub), own(&other), "they are drawn");
    }

    #[test]
    fn whom_nobody_can_ask_hears_of_the_option() {
        for (options, answers, option) in [
            (&[][..], "", "--endpoint"),
            (&["--endpoint=192.0.2.1"], "", "--behind-hub"),
            (&[], "192.0.2.1\nall\n", "--behind-site"),
        ] {
            let error = planned(options, answers).unwrap_err();
            assert!(error.contains(&format!("{option} says it")), "{error}");
        }
        assert!(
            planned(&[], "192.0.2.1\n10.12.0/24\n").unwrap_err().contains("\"10.12.0/24\" is no network")
        );
        assert!(
            planned(&["--behind-site=all"], "192.0.2.1\n\n")
                .unwrap_err()
                .contains("allowed are networks, or none")
        );
    }
}
