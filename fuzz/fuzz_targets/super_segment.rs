//! Any bytes as a packet with metadata from the link.

#![no_main]

use tunnel::super_segment::Metadata;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((metadata, packet)) = Metadata::parse(bytes) else { return };
    let header = metadata.to_vnet_header();
    assert_eq!(Metadata::from_vnet_header(&header, packet.len()), Some(metadata));
    metadata.complete_checksum(&mut packet.to_vec());
});
