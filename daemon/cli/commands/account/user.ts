/** `roomd user`: the people who sign in to the web. */
import type { Command } from "commander";
import { ROLES, type Role } from "../../../../shared/api/people/members.ts";
import { type Config, ConfigError } from "../../../core/config/config.ts";
import { peopleUrl } from "../../../core/config/people-url.ts";
import { planListen } from "../../../edge/http/tls.ts";
import { type ConfigOption, readConfiguration, withConfigOption, withOperator } from "../../host/operator.ts";
import { CliError } from "../../kit/cli-error.ts";
import { choice, command, commandGroup } from "../../kit/command.ts";
import { fieldLines, type JsonOption, say, showValue, table } from "../../kit/output.ts";
import { type OrgOption, orgOf, withOrgOption } from "./org-option.ts";

export function userCommand(): Command {
  return commandGroup("user", {
    summary: "users of the web (run on the host)",
    examples: [
      "roomd user create ada@example.org --name Ada --role admin",
      "roomd user list",
      "roomd user link ada@example.org",
      "roomd user disable ada@example.org",
    ],
  })
    .addCommand(create())
    .addCommand(list())
    .addCommand(link())
    .addCommand(disable())
    .addCommand(enable())
    .addCommand(signOut())
    .addCommand(exportPerson())
    .addCommand(forget());
}

/** URL of the web. Throws ConfigError: call it before anything is made. */
export function webUrl(config: Config): string {
  try {
    return peopleUrl(planListen(config).url);
  } catch (error) {
    throw new ConfigError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

type Options = JsonOption & ConfigOption;

/** A link is of no use if the web is off. */
export async function sayWhetherOff(config: Config, { json }: JsonOption): Promise<void> {
  if (json || config["web.enabled"]) return;
  await say("The web is off: set web.enabled = true and restart the service, so that the link leads somewhere.");
}

function create(): Command {
  const about = {
    summary: "create a user, and print a single-use sign-in link for 24 hours",
    examples: [
      "roomd user create ada@example.org --name Ada",
      "roomd user create bob@example.org --name Bob --role owner",
    ],
  };
  return withConfigOption(withOrgOption(command("create <email>", about)))
    .requiredOption("--name <name>", "display name")
    .addOption(choice("--role <role>", "role in the organization (default: member)", ROLES))
    .action(async (email: string, options: Options & OrgOption & { name: string; role?: Role }) => {
      const { name, role = "member" } = options;
      const { config } = readConfiguration(options);
      const web = webUrl(config);
      const { path, ...made } = await withOperator(options, async (operator) =>
        operator.createUser({ email, name, role, org_id: await orgOf(operator, options) }),
      );
      await showValue({ ...made, url: web + path }, options, fieldLines);
      await sayWhetherOff(config, options);
    });
}

function list(): Command {
  const about = { summary: "list everybody", examples: ["roomd user list", "roomd user list --json"] };
  return withConfigOption(command("list", about)).action(async (options: Options) => {
    const items = await withOperator(options, (operator) => operator.listUsers());
    await showValue({ items, next_cursor: null }, options, () =>
      table(
        ["USER", "E-MAIL", "NAME", "ROLES", "SINCE", "DISABLED"],
        items.map((user) => [
          user.user_id,
          user.email,
          user.name,
          user.organizations.map(({ org_id, role }) => `${role} of ${org_id}`).join(", "),
          user.created_at,
          user.disabled_at,
        ]),
      ),
    );
  });
}

function link(): Command {
  const about = {
    summary: "print a single-use sign-in link for 24 hours, which needs no password",
    notes: ["Without EMAIL it is the setup link for the first owner."],
    examples: ["roomd user link ada@example.org", "roomd user link"],
  };
  return withConfigOption(command("link [email]", about)).action(
    async (email: string | undefined, options: Options) => {
      const { config } = readConfiguration(options);
      const web = webUrl(config);
      const made = await withOperator(options, (operator) =>
        email === undefined ? operator.setupLink() : operator.linkUser(email),
      );
      if (!made)
        throw new CliError(
          "The service is set up already: give the user's e-mail address; `roomd user list` lists the users.",
        );
      await showValue({ url: web + made.path, expires_at: made.expires_at }, options, fieldLines);
      await sayWhetherOff(config, options);
    },
  );
}

function disable(): Command {
  const about = {
    summary: "disable a user; the user's sessions end, and keys stay",
    notes: ["Keys are revoked by `roomd key revoke`, or with the membership, by an admin on the members page."],
    examples: ["roomd user disable ada@example.org"],
  };
  return withConfigOption(command("disable <email>", about)).action(async (email: string, options: Options) => {
    await showValue(await withOperator(options, (operator) => operator.disableUser(email, true)), options, fieldLines);
  });
}

function enable(): Command {
  const about = { summary: "re-enable a disabled user", examples: ["roomd user enable ada@example.org"] };
  return withConfigOption(command("enable <email>", about)).action(async (email: string, options: Options) => {
    await showValue(await withOperator(options, (operator) => operator.disableUser(email, false)), options, fieldLines);
  });
}

function exportPerson(): Command {
  const about = {
    summary: "print all stored data of a user, as JSON",
    notes: [
      "`kept` has the rows of each table, without credentials; `records` has actions by and on the user. The user's own page has the same without the records.",
    ],
    examples: ["roomd user export ada@example.org > ada.json"],
  };
  return withConfigOption(command("export <email>", about)).action(async (email: string, options: Options) => {
    await showValue(
      await withOperator(options, (operator) => operator.exportUser(email)),
      { ...options, json: true },
      fieldLines,
    );
  });
}

function forget(): Command {
  const about = {
    summary: "delete a user's account and all stored data of the user, permanently",
    notes: [
      "The user leaves every organization, like a removed member. Retained records have the user's id alone. An organization's only owner stays until it has another owner, or is deleted by `roomd org delete`.",
    ],
    examples: ["roomd user forget ada@example.org"],
  };
  return withConfigOption(command("forget <email>", about)).action(async (email: string, options: Options) => {
    await showValue(await withOperator(options, (operator) => operator.forgetUser(email)), options, fieldLines);
  });
}

function signOut(): Command {
  const about = { summary: "end all sessions of a user", examples: ["roomd user sign-out ada@example.org"] };
  return withConfigOption(command("sign-out <email>", about)).action(async (email: string, options: Options) => {
    await showValue(await withOperator(options, (operator) => operator.signOutUser(email)), options, fieldLines);
  });
}
