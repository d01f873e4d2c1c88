/** Fixture of the TLS tests: configurations, certificates and a client that reports the certificate it received. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import type { Certificate } from "../../../daemon/core/config/certificate.ts";
import { type Config, loadConfig } from "../../../daemon/core/config/config.ts";
import { makeLog } from "../../../daemon/core/log.ts";
import { loadSelfSigned } from "../../../daemon/edge/http/tls-self-signed.ts";

export function configOf(env: Record<string, string>): Config {
  return loadConfig({ file: "/dev/null", env }).config;
}

/** A directory that is gone after the test. */
export function scratch(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "roomd-tls-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

let made = 0;
export async function newCertificate(directory: string): Promise<Certificate> {
  const own = join(directory, `made-${made++}`);
  mkdirSync(own);
  return loadSelfSigned(own, []);
}

/** The certificate that a client is shown, as PEM. */
export function shownAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      const base64 = socket.getPeerCertificate().raw.toString("base64");
      socket.destroy();
      resolve(base64);
    });
    socket.on("error", reject);
  });
}

/** The same form for a certificate at hand. */
export function bytesOf(certificate: Certificate): string {
  return certificate.cert.replace(/-----[^-]+-----|\s/g, "");
}

/** A log that keeps its lines, and waits for one. */
export function keptLog() {
  const lines: string[] = [];
  return { lines, log: makeLog("debug", (line) => lines.push(line)) };
}

/** Polls until the condition holds, at most 5 s. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 5000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`not so within 5 s: ${holds}`);
    await Bun.sleep(10);
  }
}
