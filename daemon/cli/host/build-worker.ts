/**
 * Process of a build: reads the build order from standard input and reports progress on standard output. When its standard input closes,
 * its parent has ended: it kills its whole process group.
 */
import { writeFileSync } from "node:fs";
import type { BuildWork } from "../../compose/build-process.ts";
import { openOperator } from "../../compose/operator.ts";
import { makePaths } from "../../core/config/paths.ts";
import { makeLog } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import type { BuildSaid } from "../../domain/templates/builds/order.ts";
import { failureOf } from "../../domain/templates/builds/queue.ts";
import { setUidBase } from "../../host/isolation/own-users.ts";
import { workOf } from "./worker-input.ts";

/** Runs the worker; resolves with the process's exit status. */
export async function runBuildWorker(): Promise<number> {
  const { config, order, context } = await workOf<BuildWork>(process.stdin, () =>
    process.kill(-process.pid, "SIGKILL"),
  );
  setUidBase(config["isolation.uid_base"]);
  const paths = makePaths(config);
  const progress = new ProgressFile(paths.build_progress);
  try {
    const operator = await openOperator({ config, paths, log: makeLog("warn") });
    try {
      const ready = await operator.templates.build(order.template_id, {
        owner: order.org_id ?? undefined,
        recipe: order.recipe ?? undefined,
        dockerfile: order.dockerfile ?? undefined,
        context: context === null ? undefined : Uint8Array.fromBase64(context),
        args: order.args,
        secrets: Object.fromEntries(
          Object.entries(order.secrets).map(([name, base64]) => [name, Uint8Array.fromBase64(base64)]),
        ),
        registryAuth: order.registry_auth ?? undefined,
        anew: order.anew,
        onProgress: (line) => {
          progress.add(line);
          void say({ line });
        },
        // Not written to the progress file, which still belongs to the other build.
        onWait: () => void say({ line: "waiting for the end of another build on this host" }),
        onStage: (stage) => say({ stage }),
      });
      await say({ ready });
      return 0;
    } finally {
      await operator.close();
    }
  } catch (error) {
    await say({ failed: failureOf(error), why: describeError(error) });
    return 1;
  }
}

const MAX_PROGRESS_BYTES = 262_144;

/** Output of the build that holds the lock, for processes that wait for its end; readable by root only. */
class ProgressFile {
  readonly #path: string;
  #bytes = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** The first line truncates the file: before it, another build may still hold the lock. */
  add(line: string): void {
    const text = `${line}\n`;
    const flag = this.#bytes === 0 ? "w" : "a";
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes > MAX_PROGRESS_BYTES) return;
    try {
      writeFileSync(this.#path, text, { flag, mode: 0o600 });
    } catch {
      // If the disk is full, the build fails anyway.
    }
  }
}

const say = (message: BuildSaid): Promise<void> =>
  new Promise((resolve) => process.stdout.write(`${JSON.stringify(message)}\n`, () => resolve()));
