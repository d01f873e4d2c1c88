/** Random numbers directly from the kernel: the state of this process' own generator is in the snapshot that clones start from. */
import { openSync, readSync } from "node:fs";
import * as libc from "./libc.ts";

export function randomHex(bytes: number): string {
  const random = Buffer.alloc(bytes);
  const fd = openSync("/dev/urandom", "r");
  try {
    readSync(fd, random);
  } finally {
    libc.close(fd);
  }
  return random.toString("hex");
}
