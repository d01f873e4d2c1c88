/** Owns `roomd org ssh-key`: the public keys that log in to an organization's sandboxes. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { errnoOf } from "../core/service-error.ts";
import { CliError, EXIT } from "./cli-error.ts";
import { command, commandGroup } from "./command.ts";
import { type ConfigOption, withConfigOption, withOperator } from "./operator.ts";
import { type OrgOption, orgOf, withOrgOption } from "./org-option.ts";
import { fieldLines, type JsonOption, print, showValue, table } from "./output.ts";
import { seconds } from "./values.ts";

type Options = JsonOption & ConfigOption & OrgOption;

export function sshKeyCommand(): Command {
  return commandGroup("ssh-key", {
    summary: "public keys that log in to sandboxes by ssh (run on the host)",
    examples: ["roomd org ssh-key add ~/.ssh/id_ed25519.pub", "roomd org ssh-key list"],
  })
    .addCommand(add())
    .addCommand(list())
    .addCommand(remove());
}

function add(): Command {
  const about = {
    summary: "let the holder of this key log in to every sandbox of the organization",
    examples: [
      "roomd org ssh-key add ~/.ssh/id_ed25519.pub",
      "roomd org ssh-key add ./ada.pub --name Ada --expires-in 30d --org org_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D",
    ],
  };
  return withConfigOption(withOrgOption(command("add <file>", about)))
    .option("--name <name>", "what people call it (default: its comment)")
    .option("--expires-in <time>", "it expires after this time, such as 30d", seconds)
    .action(async (file: string, options: Options & { name?: string; expiresIn?: number }) => {
      const public_key = readKey(file);
      const added = await withOperator(options, async (operator) =>
        operator.addSshKey(await orgOf(operator, options), {
          public_key,
          name: options.name,
          expires_in_seconds: options.expiresIn,
        }),
      );
      await showValue(added, options, fieldLines);
    });
}

function list(): Command {
  const about = {
    summary: "list an organization's public keys",
    examples: ["roomd org ssh-key list", "roomd org ssh-key list --json"],
  };
  return withConfigOption(withOrgOption(command("list", about))).action(async (options: Options) => {
    const items = await withOperator(options, async (operator) => operator.listSshKeys(await orgOf(operator, options)));
    await showValue({ items, next_cursor: null }, options, () =>
      table(
        ["SSH KEY", "NAME", "KIND", "FINGERPRINT", "CREATED", "EXPIRES"],
        items.map((key) => [key.ssh_key_id, key.name, key.algorithm, key.fingerprint, key.created_at, key.expires_at]),
      ),
    );
  });
}

function remove(): Command {
  const about = {
    summary: "remove a public key; sessions opened with it end",
    examples: ["roomd org ssh-key remove ssk_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D"],
  };
  return withConfigOption(withOrgOption(command("remove <ssh-key-id>", about))).action(
    async (sshKeyId: string, options: Options) => {
      const removed = await withOperator(options, async (operator) =>
        operator.removeSshKey(await orgOf(operator, options), sshKeyId),
      );
      if (options.json) await print(JSON.stringify(removed));
      else await print(`public key ${removed.fingerprint} is removed`);
    },
  );
}

function readKey(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new CliError(`${file} cannot be read (${errnoOf(error) ?? String(error)}).`, EXIT.usage);
  }
}
