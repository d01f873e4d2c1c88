/**
 * Work of a reader thread: runs reads on a read-only connection of its own, in parts of at most some milliseconds, each in one transaction.
 * Owners share its time as they share that of the event loop.
 */

import { monotonicMs, startTimer } from "../../core/clock.ts";
import { LoopTime } from "../../core/loop/time.ts";
import { describeError } from "../../core/service-error.ts";
import { openReading, type Reading } from "../client.ts";
import { type FromReader, PartBoard, type ToReader, WINDOW } from "./messages.ts";
import { type AnyRead, nextPart, PART_CHARACTERS, PART_MS, type Step } from "./read.ts";

declare const self: Worker;

/** A read under way. */
interface Job {
  /** Parts that may be sent before one is taken. */
  credit: number;
  isCancelled: boolean;
  /** Continues it if it waits for credit. */
  wake(): void;
}

/** Answers the messages of the event loop from now on. */
export function serveReads(reads: readonly AnyRead[]): void {
  const byName = new Map(reads.map((read) => [read.name, read]));
  const jobs = new Map<number, Job>();
  let opened: { reading: Reading; board: PartBoard } | null = null;
  const time = new LoopTime({
    now: monotonicMs,
    defer: (callback) => void setImmediate(callback),
    after: (ms, callback) => void startTimer(callback, ms),
    cpu: () => {
      const { user, system } = process.threadCpuUsage();
      return (user + system) / 1_000;
    },
  });

  self.onmessage = ({ data }: MessageEvent<ToReader>) => {
    switch (data.is) {
      case "open": {
        opened = { reading: openReading(data.file), board: new PartBoard(data.board) };
        return send({ is: "ready" });
      }
      case "read":
        return void run(data).catch((error: unknown) =>
          send({ is: "failed", id: data.id, error: describeError(error) }),
        );
      case "close":
        opened?.reading.close();
        opened = null;
        return send({ is: "closed" });
    }
    const job = jobs.get(data.id);
    if (!job) return;
    if (data.is === "taken") job.credit++;
    else job.isCancelled = true;
    job.wake();
  };

  const run = async ({ id, read: name, input, owner, isWhole }: Extract<ToReader, { is: "read" }>) => {
    const read = byName.get(name);
    if (!read || !opened) throw new Error(`${name} cannot be read here`);
    const job: Job = { credit: WINDOW, isCancelled: false, wake: () => {} };
    jobs.set(id, job);
    const steps = read.run(opened.reading.queries, input);
    const earlier: Uint8Array<ArrayBuffer>[] = [];
    let rest: unknown;
    try {
      for (let isLast = false; !isLast; ) {
        await time.next(owner, name);
        while (job.credit === 0 && !job.isCancelled) await new Promise<void>((wake) => Object.assign(job, { wake }));
        if (job.isCancelled || !opened) return;
        const part = partOf(steps, opened);
        isLast = part.isLast;
        rest = part.rest ?? (isWhole ? rest : undefined);
        if (part.text === "" && !isLast) continue;
        const encoded = new TextEncoder().encode(part.text);
        if (isWhole && !isLast) {
          earlier.push(encoded);
          continue;
        }
        job.credit--;
        const bytes = earlier.length === 0 ? encoded : Bun.concatArrayBuffers([...earlier, encoded], Infinity, true);
        send({ is: "part", id, bytes, rest, isLast }, [bytes.buffer]);
      }
    } finally {
      jobs.delete(id);
      steps.return();
    }
  };
}

function partOf(steps: Iterator<Step<unknown>, void>, { reading, board }: { reading: Reading; board: PartBoard }) {
  const until = monotonicMs() + PART_MS;
  board.start();
  try {
    return reading.within(() => nextPart(steps, (text) => text.length >= PART_CHARACTERS || monotonicMs() > until));
  } finally {
    board.end();
  }
}

const send = (message: FromReader, transfer: ArrayBuffer[] = []) => self.postMessage(message, transfer);
