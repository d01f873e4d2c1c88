/** The demo of setup: a room, a sandbox in it, a command, and its drive both ways. It stays for the reader to explore. */
import { createHash, randomBytes } from "node:crypto";
import { fileGet, filePut } from "../../../../shared/api/drive.ts";
import { sandboxExec } from "../../../../shared/api/executions.ts";
import { roomCreate } from "../../../../shared/api/rooms.ts";
import { sandboxDestroy, sandboxGet } from "../../../../shared/api/sandboxes.ts";
import { createSandbox } from "../../commands/sandbox/sandbox-create.ts";
import { CliError } from "../../kit/cli-error.ts";
import { call, download } from "../../kit/client.ts";
import type { Step } from "./steps.ts";

export const ROOM = "demo";
export const AGENT = "agent-1";
const MEMORY_MIB = 512;
/** Size of the files that the demo copies. */
const FILE_BYTES = 64 * 1024;
/** States of a sandbox before it runs; the service limits the duration of each. */
const COMING: readonly string[] = ["creating", "starting"];
const LOOK_MS = 500;

/** How many steps it has. */
export const DEMO_STEPS = 4;

/** Runs the demo. Throws CliError at the first failure. */
export async function showDemo(step: Step, keyFile: string): Promise<void> {
  await step("a room", () => makeRoom(keyFile));
  await step("a sandbox", makeSandbox);
  await step("a command in the sandbox", async (note) => {
    note("$ uname -a");
    note((await inGuest(["uname", "-a"])).trimEnd());
    return "ran";
  });
  await step("64 KiB over the room's drive, both ways", driveBothWays);
}

async function makeRoom(keyFile: string): Promise<string> {
  const refused = await codeOf(call(roomCreate, { room_id: ROOM }), ["room_id_in_use", "invalid_api_key"]);
  if (refused === "invalid_api_key") {
    throw new CliError({
      detail: `The service does not know the key in ${keyFile}.`,
      errors: [],
      hint: "Remove that file and run this again, or set ROOMD_HTTP_LISTEN if another service is there.",
    });
  }
  return refused === null ? `created room ${ROOM}` : `room ${ROOM} is there`;
}

async function makeSandbox(): Promise<string> {
  const place = { room_id: ROOM, sandbox: AGENT };
  const there = await call(sandboxGet, place).catch((error: unknown) => {
    if (error instanceof CliError && error.complaint.code === "sandbox_not_found") return null;
    throw error;
  });
  if (there?.value.state === "running") return `sandbox ${AGENT} is running`;
  // Remove the leftovers of a failed demo first.
  if (there !== null) await call(sandboxDestroy, place);
  await createSandbox(ROOM, AGENT, { memory: MEMORY_MIB });
  const made = await untilItRuns(place);
  return `created sandbox ${AGENT}: a virtual machine with ${MEMORY_MIB} MiB, ready after ${made.create_wall_ms} ms (${made.start_mode})`;
}

/** Resolves once the sandbox runs. The create call is answered after a minute in any case; a slow host may need longer to boot. */
async function untilItRuns(place: { room_id: string; sandbox: string }) {
  for (;;) {
    const { value: sandbox } = await call(sandboxGet, place);
    if (sandbox.state === "running") return sandbox;
    if (!COMING.includes(sandbox.state))
      throw new CliError(`Sandbox ${AGENT} is ${sandbox.state}: ${sandbox.status.message}`);
    await Bun.sleep(LOOK_MS);
  }
}

async function driveBothWays(): Promise<string> {
  const sent = randomBytes(FILE_BYTES);
  await call(filePut, { room_id: ROOM, path: "/from-host" }, { body: sent });
  const read = firstWord(await inGuest(["sha256sum", "/mnt/drive/from-host"]));
  if (read !== sha256(sent)) throw otherContent("guest", "host");

  const make = `head -c ${FILE_BYTES} /dev/urandom >/mnt/drive/from-guest && sha256sum </mnt/drive/from-guest`;
  const written = firstWord(await inGuest(["sh", "-c", make]));
  const got = await (await download(fileGet, { room_id: ROOM, path: "/from-guest" })).bytes();
  if (sha256(got) !== written) throw otherContent("host", "guest");
  return "host to guest and guest to host, contents compared";
}

/** Returns standard output. Throws CliError if the command fails. */
async function inGuest(argv: string[]): Promise<string> {
  const { value } = await call(sandboxExec, { room_id: ROOM, sandbox: AGENT, argv });
  if (value.exit_code === 0) return value.stdout ?? "";
  throw new CliError({
    detail: `\`${argv.join(" ")}\` ended with ${value.exit_code ?? value.signal} in the sandbox: ${value.stderr ?? ""}`,
    errors: [],
    hint: `\`roomd logs ${ROOM} ${AGENT}\` shows its console.`,
  });
}

/** The refusal's code if it is one of these, null if there was no refusal. */
async function codeOf(work: Promise<unknown>, codes: readonly string[]): Promise<string | null> {
  try {
    await work;
    return null;
  } catch (error) {
    const code = error instanceof CliError ? error.complaint.code : undefined;
    if (code === undefined || !codes.includes(code)) throw error;
    return code;
  }
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const firstWord = (text: string) => text.split(/\s/)[0] ?? "";
const otherContent = (reader: string, writer: string) =>
  new CliError(`The ${reader} read different content than the ${writer} wrote: this is a bug in roomd.`);
