/**
 * Builds the packages that the daemon serves to clients, and packs them into one file that it embeds: a line of JSON with the bytes of
 * each package in base64, by name. The same sources give the same bytes.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { cliTarball } from "./cli.ts";
import { sdkTarball } from "./sdk.ts";
import { wheel } from "./wheel.ts";

const [to = "", commit = "unknown"] = process.argv.slice(2);
const root = resolve(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const python = wheel(root, version);
const packages = {
  "roomd-sdk.tgz": sdkTarball(root, join(root, "dist/.packages")),
  "roomd-cli.tgz": await cliTarball(root, join(root, "dist/.packages"), { version, commit }),
  [python.name]: python.bytes,
};
const packed = Object.entries(packages).map(([name, bytes]) => [name, Buffer.from(bytes).toString("base64")]);
writeFileSync(to, JSON.stringify(Object.fromEntries(packed)));
