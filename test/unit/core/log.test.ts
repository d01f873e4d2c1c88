import { expect, test } from "vitest";
import { makeLog } from "../../../daemon/core/log.ts";

test("a line steers no terminal, and says what was said", () => {
  const lines: string[] = [];
  const log = makeLog("info", (line) => lines.push(line));
  const name = "\u009b31m\u007f\u0085\u001b[2J\n";
  log.info("a guest said", { name });
  const [line = ""] = lines;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
  expect(line.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  expect(JSON.parse(line)).toMatchObject({ message: "a guest said", name });
});
