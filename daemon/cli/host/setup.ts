/**
 * `roomd setup`: from an installed roomd to a room with a running sandbox. The order of the steps and their outcome are here, the steps in
 * setup/. Existing parts are reused.
 */
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { planListen } from "../../edge/http/tls.ts";
import { selfSignedFile } from "../../edge/http/tls-self-signed.ts";
import { webUrl } from "../commands/account/user.ts";
import { CliError } from "../kit/cli-error.ts";
import { command } from "../kit/command.ts";
import { type JsonOption, paint, print, showValue } from "../kit/output.ts";
import { withoutProgress } from "../kit/progress.ts";
import { readConfiguration, withOperator } from "./operator.ts";
import { provideDaemon } from "./setup/daemon.ts";
import { AGENT, DEMO_STEPS, ROOM, showDemo } from "./setup/demo.ts";
import { provideKeys, readKey } from "./setup/first-keys.ts";
import { provideKvm } from "./setup/kvm.ts";
import { installPackages } from "./setup/packages.ts";
import { numberedSteps } from "./setup/steps.ts";
import { provideTemplate } from "./setup/template.ts";

const STEPS = 4;

interface SetupOptions extends JsonOption {
  demo: boolean;
}

export function setupCommand(): Command {
  const about = {
    summary: "make the service ready: packages, template, first key, daemon, and a demo (run on the host, as root)",
    notes: [
      "Existing parts are reused, so it can be run at any time. The demo is the room `demo` with one sandbox, and is left running.",
      "ROOMD_ variables that configure the daemon give it a separate one, in the background, alongside the host's service.",
    ],
    examples: ["roomd setup", "roomd setup --no-demo", "roomd setup --json"],
  };
  return command("setup", about)
    .option("--no-demo", "make no room and no sandbox to try")
    .action(async (options: SetupOptions) => {
      if (process.getuid?.() !== 0)
        throw new CliError("Run this as root: it installs packages and starts virtual machines.");
      // Variables of an earlier run would direct the steps below to another service.
      for (const name of ["ROOMD_URL", "ROOMD_API_KEY"]) delete process.env[name];
      const { config, paths } = readConfiguration({});
      const web = webUrl(config);
      await withoutProgress(async () => {
        const step = numberedSteps(STEPS + (options.demo ? DEMO_STEPS : 0), options.json === true);
        await step("missing packages and access", async (note) => {
          const installed = await installPackages(note);
          const access = await provideKvm();
          if (access !== null) note(access);
          return installed;
        });
        await step("the default template", (note) => provideTemplate(paths, note));
        await step("the first organization", () => provideKeys(paths));
        await step("the daemon", provideDaemon);
        process.env.ROOMD_API_KEY = readKey(paths) ?? "";
        if (options.demo) await showDemo(step, paths.first_keys);
      });
      const certificate = selfSignedFile(paths.tls);
      const link = config["web.enabled"] ? await withOperator({}, (operator) => operator.setupLink()) : null;
      const made = {
        url: planListen(config).url,
        setup: link && web + link.path,
        api_key: process.env.ROOMD_API_KEY ?? "",
        key_file: paths.first_keys,
        ca_cert: web.startsWith("https:") && existsSync(certificate) ? certificate : null,
        ...(options.demo ? { room_id: ROOM, agent_id: AGENT } : {}),
        slow: await whySlow(),
      };
      if (!options.json) await print("");
      await showValue(made, options, exportLines);
    });
}

/** Note that guests are emulated, and how to change it; null if they are not. */
async function whySlow(): Promise<string | null> {
  const checks = await withOperator({}, (operator) => operator.doctor());
  const check = checks.find(({ id }) => id === "acceleration");
  return check === undefined || check.status === "ok" ? null : [check.message, check.remedy].filter(Boolean).join(" ");
}

interface SetupReport {
  url: string;
  slow: string | null;
  api_key: string;
  ca_cert: string | null;
  setup: string | null;
}

/** Settings with which a browser and a shell continue. */
export function exportLines({ url, api_key, ca_cert, setup, slow }: SetupReport): string[] {
  const note = `The certificate is the service's own: clients also need a copy of ${ca_cert}, named by ROOMD_CA_CERT.`;
  const people =
    setup === null ? [] : [`setup: ${setup}`, "This link signs the first person in, once, within 24 hours.", ""];
  const emulated = slow === null ? [] : [paint("yellow", slow), ""];
  const exports = [`export ROOMD_URL=${url}`, `export ROOMD_API_KEY=${api_key}`];
  return [...(ca_cert === null ? [] : [note]), ...people, ...emulated, ...exports];
}
