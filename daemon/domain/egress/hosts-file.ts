/** Reader of a file in the format of /etc/hosts (lines of an address and names); the file is read again when it has changed. */
import { readFileSync, statSync } from "node:fs";
import { type Address, readAddress } from "./addresses.ts";
import { canonicalName } from "./names.ts";

export class HostsFile {
  readonly #path: string;
  #hosts = new Map<string, Address[]>();
  #version = "";

  constructor(path: string) {
    this.#path = path;
  }

  /** The addresses of a canonical name, if the file has it. Throws the errors of the file system. */
  addressesOf(name: string): Address[] | undefined {
    const version = versionOf(this.#path);
    if (version !== this.#version) this.#hosts = readHosts(readFileSync(this.#path, "utf8"));
    this.#version = version;
    return this.#hosts.get(name);
  }
}

/** A value that differs when the file has changed. Throws the errors of the file system. */
export function versionOf(path: string): string {
  const { mtimeMs, size, ino } = statSync(path);
  return `${mtimeMs} ${size} ${ino}`;
}

function readHosts(text: string): Map<string, Address[]> {
  const hosts = new Map<string, Address[]>();
  for (const line of text.split("\n")) {
    const [first = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    const address = readAddress(first);
    for (const written of address ? names : []) {
      const name = canonicalName(written);
      if (address && name) hosts.set(name, [...(hosts.get(name) ?? []), address]);
    }
  }
  return hosts;
}
