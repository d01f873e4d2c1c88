/**
 * Benchmark of the effect of a hostile image on others: `true` in a sandbox during the import of an image that unpacks to more than its
 * disk holds, in alternation with an idle host. The limit of its p99 is twice the idle one.
 */
import { join } from "node:path";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import { BINARY, type TestDaemon } from "../harness/daemon.ts";
import { ownTemplates } from "../harness/images/built-templates.ts";
import { busyboxRoot, type Layer, writeImage } from "../harness/images/oci-image.ts";
import { timed } from "./load/sampling.ts";
import { summarize } from "./load/stats.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 600;
const ROUNDS = 3;
const ROOM = "bench";
const BYSTANDER = "bystander";
const DISK_MIB = 1024;
const ZEROS = Buffer.alloc(64 * 1024 * 1024);
/** More files than the disk has space for, of some kilobytes packed each. */
const BOMB: Layer = Array.from({ length: 17 }, (_, at) => ({ name: `bomb-${at}`, content: ZEROS }));

export async function benchImages({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: true, env: { ROOMD_POOL_SIZE: "0" } });
  ownTemplates(daemon);
  const bomb = await writeImage(join(daemon.home, "bomb"), [busyboxRoot(), BOMB]);
  await daemon.room(ROOM);
  await daemon.sandbox(ROOM, BYSTANDER, GUEST_CID_MIN);
  const each = Math.ceil(count / ROUNDS);
  const [quiet, during]: [number[], number[]] = [[], []];
  await sample([], each, daemon);
  for (let round = 0; round < ROUNDS; round++) {
    await sample(quiet, each, daemon);
    const end = await unpacking(daemon, bomb);
    await sample(during, each, daemon);
    await end();
  }
  report.add("while_unpacked", "ms", during, "quiet");
  report.add("quiet", "ms", quiet);
  report.add("while_unpacked_p99_ratio", "×", [summarize(during).p99 / summarize(quiet).p99], undefined, {
    of: "p50",
    most: 2,
  });
}

/** Resolves once the image is being unpacked. The returned function ends the import, and throws if it had ended before. */
async function unpacking(daemon: TestDaemon, image: string): Promise<() => Promise<void>> {
  const argv = [BINARY, "template", "import", "bomb", image, "--disk", String(DISK_MIB), "--verbose"];
  const child = Bun.spawn(argv, { env: daemon.env, stdout: "ignore", stderr: "pipe" });
  const reader = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
  let output = "";
  while (!output.includes("unpacking the layers")) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`the image was not taken in: ${output}`);
    output += value;
  }
  reader.releaseLock();
  return async () => {
    if (child.exitCode !== null)
      throw new Error(`the image was taken in, or refused, before others were measured: ${output}`);
    child.kill();
    await child.exited;
  };
}

async function sample(into: number[], count: number, daemon: TestDaemon): Promise<void> {
  for (let taken = 0; taken < count; taken++) {
    into.push(
      await timed(async () => {
        const { exit_code } = await daemon.exec(ROOM, BYSTANDER, { argv: ["true"] });
        if (exit_code !== 0) throw new Error(`the command ended with ${exit_code}`);
      }),
    );
  }
}
