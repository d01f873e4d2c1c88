/**
 * The guest's emulated network: a dummy interface, so that a default route exists, and nftables rules that redirect outgoing traffic to
 * this agent and reject the traffic that the agent does not carry. Without these rules the guest has no network at all.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeEtc } from "../etc.ts";
import { GATEWAY_PORT, ROOM_ADDRESS, ROOM_PORT } from "../gateway/place.ts";
import * as libc from "../libc.ts";
import type { Reaper } from "../reap.ts";
import { MODULES, runtimeProgram } from "../runtime.ts";
import { INTERCEPT_PORT, OWN_ADDRESS, RESOLVER } from "./places.ts";

const INTERFACE = "egress0";
/** The second has a dedicated range (RFC 4193). */
const ADDRESSES = [`${OWN_ADDRESS}/32`, "fd72:6f6f:6d64::2/128"] as const;

/**
 * The kernel tracks each connection as soon as a NAT rule exists. Loopback connections do not need it, except those that the rules redirect
 * to the agent: its replies are translated by connection tracking.
 */
const LOCAL = "127.0.0.0/8";
const RULES = `
table inet roomd {
  chain untracked {
    type filter hook output priority -300; policy accept;
    oifname != "lo" return
    ip daddr ${ROOM_ADDRESS} return
    tcp sport { ${GATEWAY_PORT}, ${INTERCEPT_PORT}, ${RESOLVER.port} } return
    udp sport ${RESOLVER.port} return
    ip saddr ${LOCAL} ip daddr ${LOCAL} notrack
    ip6 saddr ::1 ip6 daddr ::1 notrack
  }
  chain turn {
    type nat hook output priority -100; policy accept;
    oifname "lo" ip daddr ${ROOM_ADDRESS} tcp dport ${ROOM_PORT} redirect to :${GATEWAY_PORT}
    oifname != "${INTERFACE}" return
    udp dport 53 dnat ip to ${RESOLVER.address}:${RESOLVER.port}
    meta nfproto ipv4 tcp dport 53 dnat ip to ${RESOLVER.address}:${RESOLVER.port}
    meta l4proto tcp redirect to :${INTERCEPT_PORT}
  }
  chain refuse {
    type filter hook output priority 0; policy accept;
    oifname != "${INTERFACE}" return
    ip daddr 127.0.0.0/8 return
    ip6 daddr ::1 return
    reject with icmpx type port-unreachable
  }
  # Containers have interfaces of their own. By where a packet would leave: what goes from one to another passes here too. Before Docker's.
  chain arrive {
    type nat hook prerouting priority -110; policy accept;
    fib daddr oifname != "${INTERFACE}" return
    udp dport 53 dnat ip to ${OWN_ADDRESS}:${RESOLVER.port}
    meta nfproto ipv4 tcp dport 53 dnat ip to ${OWN_ADDRESS}:${RESOLVER.port}
    meta nfproto ipv4 meta l4proto tcp dnat ip to ${OWN_ADDRESS}:${INTERCEPT_PORT}
  }
  chain pass {
    type filter hook forward priority 0; policy accept;
    oifname "${INTERFACE}" reject with icmpx type port-unreachable
  }
}
`;

/**
 * Maximum number of connections that the kernel tracks, which it derives from the memory at boot; entries take memory only while in use. A
 * closed connection is dropped before the default two minutes, so that 200 per second leave most of the table free.
 */
const TRACKED = {
  "module/nf_conntrack/parameters/hashsize": "65536",
  "net/netfilter/nf_conntrack_max": "262144",
  "net/netfilter/nf_conntrack_tcp_timeout_time_wait": "30",
} as const;

/** Sets the network up, once per boot. Throws with the stderr of a failed program. */
export async function makeNetwork(reaper: Reaper): Promise<void> {
  const link = `link add ${INTERFACE} type dummy\nlink set ${INTERFACE} up\n`;
  const addresses = ADDRESSES.map((address) => `address add ${address} dev ${INTERFACE} noprefixroute\n`).join("");
  await run(reaper, runtimeProgram("nft", "-f", "-"), RULES);
  for (const [name, value] of Object.entries(TRACKED)) {
    writeFileSync(join(name.startsWith("module/") ? "/sys" : "/proc/sys", name), value);
  }
  // By default the module would create an unneeded interface.
  await run(reaper, runtimeProgram("modprobe", "-d", MODULES, "dummy", "numdummies=0"), "");
  await run(reaper, runtimeProgram("ip", "-batch", "-"), `${link}${addresses}${ROUTES}`);
  // A query may be lost among hundreds of concurrent ones. While the host takes longer for a name, all its queries wait together.
  writeEtc("resolv.conf", `nameserver ${RESOLVER.address}\noptions timeout:3 attempts:4\n`);
}

const ROUTES = `route add 0.0.0.0/0 dev ${INTERFACE}\nroute add ::/0 dev ${INTERFACE}\n`;

/** Without the interface there is no route: the guest's kernel refuses every connection. */
export function removeRoutes(): void {
  libc.lowerInterface(INTERFACE);
}

async function run(reaper: Reaper, argv: string[], input: string): Promise<void> {
  const child = Bun.spawn(argv, {
    stdin: Buffer.from(input),
    stdout: "ignore",
    stderr: "pipe",
    env: {},
  });
  reaper.spare(child);
  const errorText = await new Response(child.stderr).text();
  const code = await child.exited;
  if (code !== 0) throw new Error(`${argv.join(" ")} ended with ${code}: ${errorText.trim()}`);
}
