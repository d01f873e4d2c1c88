/** Main loop of a service thread: runs tasks in parts. Owners share the thread's time as they share that of the event loop. */
import { readlinkSync } from "node:fs";
import { basename } from "node:path";
import { monotonicMs, startTimer } from "../clock.ts";
import { LoopTime } from "../loop/scheduler.ts";
import { type FromThread, failureOf, PartBoard, type TaskPart, type ToThread, WINDOW } from "./messages.ts";

declare const self: Worker;

/** A task under way. */
export interface Running {
  /** The task's next part; an undefined value is not sent. Buffers in `transfer` are moved to the receiver. */
  next(): TaskPart & { transfer?: ArrayBuffer[] };
  end(): void;
}

/** Tasks of a thread, with the resources that the thread has opened. */
export interface Service {
  /** Throws if the task does not exist. */
  start(task: string, input: unknown): Running;
  close(): void;
}

interface Job {
  /** Parts that may be sent before the receiver takes one. */
  credit: number;
  isCancelled: boolean;
  /** Continues the job if it waits for credit. */
  wake(): void;
}

/** Starts answering the messages of the event loop. */
export function serveThread(open: (opening: unknown) => Service): void {
  const jobs = new Map<number, Job>();
  let opened: { service: Service; board: PartBoard } | null = null;
  const time = new LoopTime({
    now: monotonicMs,
    defer: (callback) => void setImmediate(callback),
    after: (ms, callback) => void startTimer(callback, ms),
    cpu,
  });

  self.onmessage = ({ data }: MessageEvent<ToThread>) => {
    switch (data.is) {
      case "open": {
        const board = new PartBoard(data.board);
        board.enter(Number(basename(readlinkSync("/proc/thread-self"))));
        opened = { service: open(data.opening), board };
        return send({ is: "ready" });
      }
      case "run":
        return void run(data).catch((error: unknown) => send({ is: "failed", id: data.id, failure: failureOf(error) }));
      case "close":
        opened?.service.close();
        opened = null;
        return send({ is: "closed" });
    }
    const job = jobs.get(data.id);
    if (!job) return;
    if (data.is === "taken") job.credit++;
    else job.isCancelled = true;
    job.wake();
  };

  const run = async ({ id, task, input, owner }: Extract<ToThread, { is: "run" }>) => {
    if (!opened) throw new Error(`${task} cannot run here`);
    const job: Job = { credit: WINDOW, isCancelled: false, wake: () => {} };
    jobs.set(id, job);
    const running = opened.service.start(task, input);
    try {
      for (let isLast = false; !isLast; ) {
        await time.next(owner, task);
        while (job.credit === 0 && !job.isCancelled) await new Promise<void>((wake) => Object.assign(job, { wake }));
        if (job.isCancelled || !opened) return;
        const { transfer, ...part } = partOf(id, running, opened.board);
        isLast = part.isLast;
        if (part.value === undefined && !isLast) continue;
        job.credit--;
        send({ is: "part", id, ...part }, transfer);
      }
    } finally {
      jobs.delete(id);
      running.end();
    }
  };
}

function cpu(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function partOf(id: number, running: Running, board: PartBoard) {
  board.start(id, cpu());
  try {
    return running.next();
  } finally {
    board.end();
  }
}

const send = (message: FromThread, transfer: ArrayBuffer[] = []) => self.postMessage(message, transfer);
