/**
 * The process of an attack. Arguments: the file that exports it as its default, and a file with a Target. It prints "attacking" with its
 * first answer, and its counts as JSON when it is ended.
 */
import { readFileSync, writeSync } from "node:fs";
import type { Attack, Target } from "./attack.ts";

const [, , file = "", targetFile = ""] = process.argv;
const { default: attack } = (await import(file)) as { default: Attack };
const counts: Record<string, number> = {};
process.on("SIGTERM", () => {
  writeSync(1, `${JSON.stringify(counts)}\n`);
  process.exit(0);
});
let isTold = false;
await attack.attack(JSON.parse(readFileSync(targetFile, "utf8")) as Target, (kind) => {
  counts[kind] = (counts[kind] ?? 0) + 1;
  if (!isTold) console.log("attacking");
  isTold = true;
});
