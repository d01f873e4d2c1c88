/**
 * Test that a new template must pass before it is published: clones of it share nothing that must differ, know their own CID, and have the
 * right time.
 */
import { BUSYBOX } from "../../../shared/agent-protocol/runtime.ts";
import { newId } from "../../../shared/ids.ts";
import { wallMs } from "../../core/clock.ts";
import { within } from "../../core/concurrency/published.ts";
import type { SandboxPaths } from "../../core/config/paths.ts";
import type { GuestHost, GuestImage } from "../../host/guest/plan.ts";
import { startFollowed } from "../../host/guest-link/exec.ts";
import { type BuildGuest, withBuildGuest } from "./build-guest.ts";

const CLONES = 3;
const COMMAND_MS = 20_000;
/** Limit of a clone's output. */
const MAX_CHARACTERS = 4096;
const MAX_CLOCK_SKEW_MS = 500;
const ALIKE = ["urandom", "uuid", "machine_id", "hostname"] as const;

type Facts = Record<(typeof ALIKE)[number] | "cid" | "clock_seconds", string>;

const SCRIPT = [
  "echo urandom=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \\n')",
  "echo uuid=$(cat /proc/sys/kernel/random/uuid)",
  "echo machine_id=$(cat /etc/machine-id)",
  "echo hostname=$(hostname)",
  "echo clock_seconds=$EPOCHREALTIME",
].join("; ");

/** Starts clones and compares them. Throws with the reason if the test fails. */
export async function selfTest(
  host: GuestHost,
  placeOf: PlaceOf,
  image: GuestImage,
  signal?: AbortSignal,
): Promise<void> {
  const seen = new Map<string, string>();
  for (let clone = 1; clone <= CLONES; clone++) {
    const { facts, skewMs } = await inspectClone(host, placeOf, image, signal);
    for (const name of ALIKE) {
      const value = facts[name];
      if (!value) throw new Error(`clone ${clone} has no ${name}`);
      if (seen.has(`${name} ${value}`)) throw new Error(`two clones have the same ${name}`);
      seen.set(`${name} ${value}`, value);
    }
    if (skewMs > MAX_CLOCK_SKEW_MS) throw new Error(`the clock of clone ${clone} is ${Math.round(skewMs)} ms off`);
  }
}

type PlaceOf = (sandboxId: string) => SandboxPaths;

async function inspectClone(host: GuestHost, placeOf: PlaceOf, image: GuestImage, signal?: AbortSignal) {
  const look = async ({ connection, hostname }: BuildGuest) => {
    const link = await connection.link(10_000);
    let text = "";
    const decoder = new TextDecoder();
    const sink = (bytes: Uint8Array) => {
      if (text.length < MAX_CHARACTERS) text += decoder.decode(bytes, { stream: true });
    };
    const startedAt = wallMs();
    const following = await startFollowed(link, {
      exec_id: newId("exe"),
      fingerprint: "",
      // The runtime's busybox: a root may lack one.
      argv: [BUSYBOX, "sh", "-c", SCRIPT],
      cwd: "/",
      env: {},
      user: "root",
      timeout_ms: COMMAND_MS,
      stdin: false,
    });
    const read = async () => {
      for await (const pieces of following.pieces()) for (const { bytes } of pieces) sink(bytes);
      return await following.finished;
    };
    // The agent that enforces the command's timeout is itself under test.
    const result = await within(read(), 2 * COMMAND_MS, "a clone's command").finally(() => following.close());
    const endedAt = wallMs();
    if (result.exit_code !== 0) throw new Error(`a clone could not run a command: ${text.slice(0, 500)}`);
    const facts = Object.fromEntries(text.split("\n").map((line) => line.split("=", 2))) as Facts;
    if (facts.hostname !== hostname) throw new Error(`a clone is named ${facts.hostname}, not ${hostname}`);
    const clock = Number(facts.clock_seconds) * 1000;
    if (!(clock > 0)) throw new Error("a clone does not report its time");
    return { facts, skewMs: Math.max(0, startedAt - clock, clock - endedAt) };
  };
  return await withBuildGuest(host, placeOf, image, null, look, signal);
}
