/**
 * Plays root in a guest, in a separate process: swaps entries of the drive for links that lead out of it, FIFOs and devices, as fast as it
 * can, until it is killed. Arguments: the drive, and the directory beside it that no call may reach.
 */
import { dlopen } from "bun:ffi";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";

const [drive = "", outside = ""] = process.argv.slice(2);
const AT_FDCWD = -100;
const RENAME_EXCHANGE = 2;
const { renameat2 } = dlopen("libc.so.6", {
  renameat2: { args: ["i32", "ptr", "i32", "ptr", "u32"], returns: "i32" },
}).symbols;

const bytes = (path: string) => Buffer.from(`${path}\0`);
const exchange = (a: string, b: string): (() => void) => {
  const [from, to] = [bytes(`${drive}/${a}`), bytes(`${drive}/${b}`)];
  return () => void renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
};

const swaps: (() => void)[] = [];
for (const [name, target] of [
  ["absolute", outside],
  ["relative", "../outside"],
] as const) {
  mkdirSync(`${drive}/${name}`);
  writeFileSync(`${drive}/${name}/secret`, "public");
  symlinkSync(target, `${drive}/${name}-link`);
  swaps.push(exchange(name, `${name}-link`));
}
writeFileSync(`${drive}/file`, "public");
symlinkSync(`${outside}/secret`, `${drive}/file-link`);
swaps.push(exchange("file", "file-link"));
writeFileSync(`${drive}/pipe`, "public");
execFileSync("mkfifo", [`${drive}/pipe-fifo`]);
swaps.push(exchange("pipe", "pipe-fifo"));

// A path with `..` whose directory is moved towards the root while it is walked: one step up too many leads outside.
mkdirSync(`${drive}/low/a/b/c`, { recursive: true });
mkdirSync(`${drive}/high`);
mkdirSync(`${drive}/inner`);
writeFileSync(`${drive}/inner/secret`, "public");
symlinkSync("../../../../inner", `${drive}/low/a/b/c/inner`);
symlinkSync("../../../../outside", `${drive}/low/a/b/c/outside`);
symlinkSync("low/a/b/c/inner", `${drive}/dots`);
symlinkSync("low/a/b/c/outside", `${drive}/dots-out`);
swaps.push(exchange("low/a/b", "high"));

console.log("swapping");
for (;;) for (const swap of swaps) swap();
