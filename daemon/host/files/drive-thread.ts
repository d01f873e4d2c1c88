/** The thread that copies drives: executes one order after another, and checks between pieces whether the order is cancelled. */

import { monotonicMs } from "../../core/clock.ts";
import { errnoOf } from "../../core/service-error.ts";
import type { CopyReport, Ordered } from "./drive-copier.ts";
import { type Bounds, type Copied, restoreStore, StoreWriter } from "./drive-store.ts";

declare const self: Worker;

/** While guests run, this thread leaves them the processors at least half of the time. */
const WORK_MS = 20;
const REST_MS = 20;

let writer: StoreWriter | null = null;
let isGentle = false;
let since = monotonicMs();

self.onmessage = async ({ data }: MessageEvent<Ordered & { flag: SharedArrayBuffer }>) => {
  const flag = new Int32Array(data.flag);
  const between = () => {
    if (Atomics.load(flag, 0) !== 0) throw new Error("the copy was cancelled");
    if (!isGentle || monotonicMs() - since < WORK_MS) return;
    Bun.sleepSync(REST_MS);
    since = monotonicMs();
  };
  const report = await done(data, between).then(
    (copied): CopyReport => ({ copied }),
    (error: unknown): CopyReport => ({ error: String(error), code: errnoOf(error) ?? null }),
  );
  postMessage(report);
};

async function done(order: Ordered, between: () => void): Promise<Copied> {
  isGentle = order.does === "copy";
  switch (order.does) {
    case "copy":
      writer = newWriter(order, between);
      return await writer.pass(false);
    case "complete":
      if (!writer) throw new Error("there is no earlier copy");
      return await writer.pass(true);
    case "sync":
      if (!writer) throw new Error("there is no earlier copy");
      return writer.sync();
    case "restore":
      return restoreStore(order, between);
  }
}

const newWriter = ({ drive, store, bounds }: { drive: string; store: string; bounds: Bounds }, between: () => void) =>
  new StoreWriter(drive, store, bounds, between);
