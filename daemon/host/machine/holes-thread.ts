/** The thread that notes and restores the holes of one guest's memory: if that is scattered it takes a while. */
import { nextData, nextHole, punchHole } from "../files/libc.ts";
import type { HolesReport, Ordered } from "./memory-holes.ts";

declare const self: Worker;

/** A guest determines how scattered its memory is: above this number of holes in a file, absent pages may be allocated afterwards. */
const MAX_HOLES = 65_536;

interface Hole {
  file: number;
  from: number;
  to: number;
}

let recorded: Hole[] = [];

self.onmessage = ({ data: order }: MessageEvent<Ordered>) => {
  postMessage(tried(() => (order.does === "note" ? note(order.files) : restore())));
};

function note(files: readonly number[]): void {
  recorded = files.flatMap(holesOf);
}

function restore(): void {
  for (const { file, from, to } of recorded) punchHole(file, from, to - from);
}

function holesOf(file: number): Hole[] {
  const holes: Hole[] = [];
  let end = 0;
  while (holes.length < MAX_HOLES) {
    const from = nextHole(file, end);
    end = nextData(file, from);
    // At the end of a file there is a hole of length 0.
    if (end === from) break;
    holes.push({ file, from, to: end });
  }
  return holes;
}

function tried(work: () => void): HolesReport {
  try {
    work();
    return null;
  } catch (error) {
    return String(error);
  }
}
