/** Agents that resume from saved memory, and their hosts, both real except for the agent's effects on its machine. */
import { afterAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { Log } from "../../daemon/core/log.ts";
import {
  type Acquaintance,
  GuestConnection,
  restoredAs,
  strangers,
  UNPROVEN_AGENT,
} from "../../daemon/host/guest-link/connection.ts";
import { NOTHING_TO_ASK } from "../../daemon/host/guest-link/handshake.ts";
import { comeFirst } from "../../guest-agent/cpu-priority.ts";
import { HostAuth, INVALID_RESTORED, UNPROVEN_HOST } from "../../guest-agent/host-auth.ts";
import type { Served } from "../../guest-agent/link.ts";
import { Setup } from "../../guest-agent/setup.ts";
import { CONNECTION_ENDED } from "../../guest-agent/socket-link.ts";
import { GENERATION, PROOF_GENERATION, type Restored } from "../../shared/agent-protocol/messages.ts";
import { dialDaemon } from "./dial-daemon.ts";

const CID = 9100;
const FORK_CID = 9101;
const log = { warn: () => {} } as unknown as Log;
const identity = {
  ...{ hostname: "source", machine_id: "1".repeat(32), env: { WHO: "source" }, drive: null, egress: true, room: true },
  memory_mib: 512,
};
const forks = {
  ...{ hostname: "fork", machine_id: "2".repeat(32), env: { WHO: "fork" }, egress: false, room: false },
  drive: { tag: "drive", mount_point: "/mnt/drive" },
  memory_mib: 1024,
};

type Link = Awaited<ReturnType<GuestConnection["link"]>>;

/** A set-up agent, and its effects on its machine since. */
async function guest() {
  const did: string[] = [];
  /** The action that fails the next time. */
  const fails = { mount: false };
  const note = (step: string) => void did.push(step);
  const setup = new Setup(
    {
      mount: async ({ tag }) => {
        note(`mount ${tag}`);
        if (fails.mount) throw new Error("no such device");
      },
    },
    { forbid: async () => note("no network"), settled: async () => note("network") },
    { forbid: () => note("no room") },
    { goOn: async () => note("start") },
    { run: async (how, env) => note(`hooks ${how} as ${env.WHO}`) },
    {
      addEntropy: () => note("entropy"),
      setClock: () => note("clock"),
      setHostname: (name) => note(`is ${name}`),
      renewBootId: () => note("boot id"),
      setKernelLimits: (mib) => note(`limits for ${mib}`),
      writeEtc: (name, text) => note(`${name}: ${text.trimEnd().split("\n").at(-1)}`),
    },
  );
  const served: Served = {
    trust: new HostAuth(),
    setup,
    router: (stream) => stream.finish({ clock_ns: String(Date.now() * 1_000_000) }),
    line: { attach: () => {}, detach: () => {} } as unknown as Served["line"],
  };
  const connection = new GuestConnection(CID, identity, strangers(GENERATION), log);
  void dialDaemon(connection, served, CID);
  await connection.link(5_000);
  const known = connection.acquaintance;
  connection.close("saved");
  const first = did.splice(0);
  /** Its effects since the last call. */
  const done = () => did.splice(0);
  return { served, setup, known, first, done, fails };
}

let one: Awaited<ReturnType<typeof guest>>;
beforeEach(async () => {
  one = await guest();
});
afterAll(() => comeFirst(false));

/** The host's side of the machine into which the memory was loaded. */
function hostOf(
  known: Acquaintance,
  restored: Restored | null,
  guestIdentity = identity as typeof identity | typeof forks,
  generation = GENERATION,
) {
  const cid = guestIdentity === forks ? FORK_CID : CID;
  const connection = new GuestConnection(
    cid,
    guestIdentity,
    { generation, ...known },
    log,
    NOTHING_TO_ASK,
    0,
    restored,
  );
  const dial = (losesReady = false) => dialDaemon(connection, one.served, cid, { losesReady });
  /** The link of a dial that is over once the next one counts. */
  const linked = async (): Promise<Link> => {
    void dial();
    const link = await connection.link(5_000);
    expect(link.isClosed).toBe(false);
    return link;
  };
  return { connection, dial, linked };
}

const NAMES_OF_SOURCE = [
  "is source",
  "hostname: source",
  "hosts: 127.0.0.80 room.internal",
  `machine-id: ${"1".repeat(32)}`,
  ...["boot id", "limits for 512"],
];

test("a guest that was never saved is set up as usual", () => {
  expect(one.first).toEqual(["entropy", "clock", ...NAMES_OF_SOURCE, "network", "start"]);
});

describe("a guest that is resumed", () => {
  test("has new random numbers and the time before its hooks run, and its former identity", async () => {
    const { connection, linked } = hostOf(one.known, restoredAs("resumed"));
    await linked();
    expect(one.done()).toEqual(["entropy", "clock", "hooks resumed as source"]);
    expect(connection.acquaintance).toEqual(one.known);
    expect([one.setup.env, connection.state.value.restores]).toEqual([identity.env, true]);
    // A connection that is lost later is no restore.
    await linked();
    await vi.waitFor(() => expect(one.done()).toEqual(["entropy", "clock"]));
    connection.close("over");
  });

  test("mounts its drive again, whose backend is new", async () => {
    const { connection, linked } = hostOf(one.known, restoredAs("resumed"), forks);
    await linked();
    expect(one.done()).toEqual(["entropy", "clock", "mount drive", "hooks resumed as source"]);
    connection.close("over");
  });
});

describe("a forked guest", () => {
  const BECOMES = [
    ...["entropy", "clock", "no room", "is fork", "hostname: fork", "hosts: ::1 localhost ip6-localhost ip6-loopback"],
    ...[`machine-id: ${"2".repeat(32)}`, "boot id", "limits for 1024"],
    ...["mount drive", "no network", "hooks forked as fork"],
  ];

  test("is another sandbox, with which only its host can connect", async () => {
    const restored = restoredAs("forked");
    const { connection, linked } = hostOf(one.known, restored, forks);
    await linked();
    expect(one.done()).toEqual(BECOMES);
    expect(one.setup.env).toEqual(forks.env);
    const { secret, nonce } = connection.acquaintance;
    expect(secret).toBe(restored.secret);
    expect(nonce).toMatch(/^[0-9a-f]{32}$/);
    expect(nonce).not.toBe(one.known.nonce);
    // The next time the host proves that it has the new secret, and a host with the old one is refused.
    const kept = JSON.parse(JSON.stringify(connection.acquaintance)) as Acquaintance;
    connection.close("the daemon ends");
    const later = hostOf(kept, null, forks);
    await later.linked();
    expect(one.done()).toEqual(["entropy", "clock"]);
    later.connection.close("over");
    for (const restored of [null, restoredAs("forked")]) {
      const source = hostOf(one.known, restored, forks);
      expect(await source.dial()).toEqual({ welcomed: false, reason: CONNECTION_ENDED });
      await expect(source.connection.link(1)).rejects.toThrow(UNPROVEN_AGENT);
      // A host that does not require the proof is refused by the agent.
      const trusting = hostOf(one.known, restored, forks, PROOF_GENERATION);
      expect(await trusting.dial()).toEqual({ welcomed: false, reason: UNPROVEN_HOST });
    }
    expect(one.done()).toEqual([]);
  });

  test("is informed again after a lost ready, repeats nothing, and connects", async () => {
    const { connection, dial, linked } = hostOf(one.known, restoredAs("forked"), forks);
    for (const expected of [BECOMES, ["entropy", "clock"]]) {
      await dial(true);
      expect(one.done()).toEqual(expected);
      expect(connection.acquaintance).toEqual(one.known);
    }
    await linked();
    expect(connection.acquaintance.secret).not.toBe(one.known.secret);
    await linked();
    connection.close("over");
  });

  test("connects to a daemon that ended before it recorded the new identity", async () => {
    const met = hostOf(one.known, restoredAs("forked"), forks);
    await met.linked();
    met.connection.close("killed");
    one.done();
    const later = hostOf(one.known, null, forks);
    await later.linked();
    expect(one.done()).toEqual(["entropy", "clock"]);
    later.connection.close("killed too");
    const restored = restoredAs("forked");
    const last = hostOf(one.known, restored, forks);
    await last.linked();
    expect(one.done()).toEqual(BECOMES);
    expect(last.connection.acquaintance.secret).toBe(restored.secret);
    last.connection.close("over");
  });

  test("can be saved and forked again before it was dialled", async () => {
    const fork = hostOf(one.known, restoredAs("forked"), forks);
    await fork.linked();
    const known = fork.connection.acquaintance;
    fork.connection.close("saved");
    one.done();
    const second = hostOf(known, restoredAs("forked"), forks);
    await second.linked();
    expect(one.done()).toEqual(BECOMES);
    const { nonce } = second.connection.acquaintance;
    expect(new Set([one.known.nonce, known.nonce, nonce]).size).toBe(3);
    second.connection.close("over");
  });

  test("whose setup failed is set up by the next welcome", async () => {
    const { connection, dial, linked } = hostOf(one.known, restoredAs("forked"), forks);
    one.fails.mount = true;
    await dial();
    expect(one.done()).not.toContain("hooks forked as fork");
    await expect(connection.link(1)).rejects.toThrow("no such device");
    one.fails.mount = false;
    await linked();
    expect(one.done()).toEqual(BECOMES);
    connection.close("over");
  });

  test("rejects a host that does not prove to have saved it, whatever the restore message", async () => {
    const { nonce } = one.known;
    for (const how of ["resumed", "forked", "rolled_back"] as const) {
      const { secret } = strangers(GENERATION);
      const other = hostOf({ secret, nonce }, restoredAs(how), forks, PROOF_GENERATION);
      expect(await other.dial()).toEqual({ welcomed: false, reason: UNPROVEN_HOST });
    }
    expect(one.done()).toEqual([]);
    expect(one.setup.env).toEqual(identity.env);
    const own = hostOf(one.known, null);
    await own.linked();
    own.connection.close("over");
  });

  test.each<[string, unknown]>([
    ["no secret", { how: "forked" }],
    ["an invalid secret", { how: "rolled_back", secret: "short" }],
    ["a secret for an unchanged identity", { how: "resumed", secret: "7".repeat(64) }],
    ["an unknown kind", { how: "cloned", secret: "7".repeat(64) }],
    ["no object", "forked"],
  ])("requires a valid message: %s ends the connection", async (_, restored) => {
    const { dial } = hostOf(one.known, restored as Restored, forks);
    expect((await dial()).reason).toBe(INVALID_RESTORED);
    expect(one.done()).toEqual([]);
  });
});

test("a rolled-back guest has its former names and environment, and a new secret and nonce", async () => {
  const restored = restoredAs("rolled_back");
  const { connection, linked } = hostOf(one.known, restored);
  await linked();
  expect(one.done()).toEqual(["entropy", "clock", ...NAMES_OF_SOURCE, "network", "hooks rolled_back as source"]);
  expect(connection.acquaintance.secret).toBe(restored.secret);
  expect(connection.acquaintance.nonce).not.toBe(one.known.nonce);
  connection.close("over");
});
