/**
 * Owns the guest's network, which is an illusion: an interface that leads nowhere, so that there is a route; rules that turn what
 * would leave by it to this agent, and refuse what the agent does not carry. Whoever takes the rules away has no network at all.
 */
import { writeEtc } from "../etc.ts";
import { GATEWAY_PORT, ROOM_ADDRESS, ROOM_PORT } from "../gateway/place.ts";
import * as libc from "../libc.ts";
import type { Reaper } from "../reap.ts";
import { MODULES, runtimeProgram } from "../runtime.ts";
import { INTERCEPT_PORT, OWN_ADDRESS, RESOLVER } from "./places.ts";

const INTERFACE = "egress0";
/** The second is of a range of its own (RFC 4193). */
const ADDRESSES = [`${OWN_ADDRESS}/32`, "fd72:6f6f:6d64::2/128"] as const;

const RULES = `
table inet roomd {
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

/** Makes it, once per boot. Throws with what they say. */
export async function makeNetwork(reaper: Reaper): Promise<void> {
  const link = `link add ${INTERFACE} type dummy\nlink set ${INTERFACE} up\n`;
  const addresses = ADDRESSES.map((address) => `address add ${address} dev ${INTERFACE} noprefixroute\n`).join("");
  await run(reaper, runtimeProgram("nft", "-f", "-"), RULES);
  // By itself it would bring an interface that nobody asked for.
  await run(reaper, runtimeProgram("modprobe", "-d", MODULES, "dummy", "numdummies=0"), "");
  await run(reaper, runtimeProgram("ip", "-batch", "-"), `${link}${addresses}${ROUTES}`);
  // A query may be lost where hundreds come at once. For a name that takes the host longer all queries wait together.
  writeEtc("resolv.conf", `nameserver ${RESOLVER.address}\noptions timeout:3 attempts:4\n`);
}

const ROUTES = `route add 0.0.0.0/0 dev ${INTERFACE}\nroute add ::/0 dev ${INTERFACE}\n`;

/** Without the interface there is no route: every connection is refused by the guest's own kernel. */
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
  const said = await new Response(child.stderr).text();
  const code = await child.exited;
  if (code !== 0) throw new Error(`${argv.join(" ")} ended with ${code}: ${said.trim()}`);
}
