/**
 * A real terminal for a program under test: `node terminal-driver.mjs COLS ROWS PROGRAM ARG…`, run by Node because node-pty
 * does not work within Bun.
 *
 * Reads a JSON order a line on standard input, {"keys"}, {"rows","cols"} or {"signal"}; writes a JSON line for what is shown,
 * {"shown"} in base64, and {"exit_code","signal"} at the end.
 */
import { createInterface } from "node:readline";
import { spawn } from "@lydell/node-pty";

const [cols, rows, program, ...args] = process.argv.slice(2);
const terminal = spawn(program, args, {
  cols: Number(cols),
  rows: Number(rows),
  name: "xterm-256color",
  encoding: null,
});
const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

terminal.onData((shown) => tell({ shown: Buffer.from(shown).toString("base64") }));
terminal.onExit(({ exitCode, signal }) => {
  tell({ exit_code: exitCode, signal: signal ?? 0 });
  process.exit();
});
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const order = JSON.parse(line);
    if (order.keys !== undefined) terminal.write(Buffer.from(order.keys, "base64"));
    if (order.rows !== undefined) terminal.resize(order.cols, order.rows);
    if (order.signal !== undefined) terminal.kill(order.signal);
  })
  .on("close", () => terminal.kill("SIGKILL"));
