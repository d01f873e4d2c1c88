/** Pages of docs/ in the version of this daemon, and llms.txt, the list of them that models read first. */

import accounts from "../../../../docs/accounts.md" with { type: "text" };
import agents from "../../../../docs/agents.md" with { type: "text" };
import aiSdk from "../../../../docs/ai-sdk.md" with { type: "text" };
import billing from "../../../../docs/billing.md" with { type: "text" };
import branching from "../../../../docs/branching.md" with { type: "text" };
import cli from "../../../../docs/cli.md" with { type: "text" };
import cluster from "../../../../docs/cluster.md" with { type: "text" };
import comparison from "../../../../docs/comparison.md" with { type: "text" };
import computesdk from "../../../../docs/computesdk.md" with { type: "text" };
import configuration from "../../../../docs/configuration.md" with { type: "text" };
import deepagents from "../../../../docs/deepagents.md" with { type: "text" };
import egress from "../../../../docs/egress.md" with { type: "text" };
import glossary from "../../../../docs/glossary.md" with { type: "text" };
import guarantees from "../../../../docs/guarantees.md" with { type: "text" };
import guide from "../../../../docs/guide.md" with { type: "text" };
import howItWorks from "../../../../docs/how-it-works.md" with { type: "text" };
import limits from "../../../../docs/limits.md" with { type: "text" };
import mcp from "../../../../docs/mcp.md" with { type: "text" };
import migration from "../../../../docs/migration.md" with { type: "text" };
import openaiAgents from "../../../../docs/openai-agents.md" with { type: "text" };
import operations from "../../../../docs/operations.md" with { type: "text" };
import ports from "../../../../docs/ports.md" with { type: "text" };
import quickstart from "../../../../docs/quickstart.md" with { type: "text" };
import INDEX from "../../../../docs/README.md" with { type: "text" };
import reference from "../../../../docs/reference.md" with { type: "text" };
import screen from "../../../../docs/screen.md" with { type: "text" };
import sdk from "../../../../docs/sdk.md" with { type: "text" };
import sdkPython from "../../../../docs/sdk-python.md" with { type: "text" };
import sdkTypescript from "../../../../docs/sdk-typescript.md" with { type: "text" };
import security from "../../../../docs/security.md" with { type: "text" };
import service from "../../../../docs/service.md" with { type: "text" };
import ssh from "../../../../docs/ssh.md" with { type: "text" };
import templates from "../../../../docs/templates.md" with { type: "text" };
import tls from "../../../../docs/tls.md" with { type: "text" };
import traces from "../../../../docs/traces.md" with { type: "text" };
import troubleshooting from "../../../../docs/troubleshooting.md" with { type: "text" };
import usage from "../../../../docs/usage.md" with { type: "text" };
import versioning from "../../../../docs/versioning.md" with { type: "text" };
import web from "../../../../docs/web.md" with { type: "text" };
import webhooks from "../../../../docs/webhooks.md" with { type: "text" };

/** By their file names. */
export const PAGES: Record<string, string> = {
  "README.md": INDEX,
  "accounts.md": accounts,
  "agents.md": agents,
  "ai-sdk.md": aiSdk,
  "billing.md": billing,
  "branching.md": branching,
  "cli.md": cli,
  "cluster.md": cluster,
  "comparison.md": comparison,
  "computesdk.md": computesdk,
  "configuration.md": configuration,
  "deepagents.md": deepagents,
  "egress.md": egress,
  "glossary.md": glossary,
  "guarantees.md": guarantees,
  "guide.md": guide,
  "how-it-works.md": howItWorks,
  "limits.md": limits,
  "mcp.md": mcp,
  "migration.md": migration,
  "openai-agents.md": openaiAgents,
  "operations.md": operations,
  "ports.md": ports,
  "quickstart.md": quickstart,
  "reference.md": reference,
  "screen.md": screen,
  "sdk.md": sdk,
  "sdk-python.md": sdkPython,
  "sdk-typescript.md": sdkTypescript,
  "security.md": security,
  "service.md": service,
  "ssh.md": ssh,
  "templates.md": templates,
  "tls.md": tls,
  "traces.md": traces,
  "troubleshooting.md": troubleshooting,
  "usage.md": usage,
  "versioning.md": versioning,
  "web.md": web,
  "webhooks.md": webhooks,
};

const ABOUT =
  "Rooms of sandboxes for groups of AI agents, on one's own Linux host: virtual machines, a shared drive, messages.";
const ROW = /^\| \[(?<title>[^\]]+)\]\((?<name>[\w.-]+)\)\s*\| (?<about>.*?)\s*\|$/;

interface Listed {
  /** Heading of its section in the index. */
  group: string;
  title: string;
  name: string;
}

/** The pages in the order of the index. */
export function listedPages(): Listed[] {
  let group = "";
  return INDEX.split("\n").flatMap((line) => {
    if (line.startsWith("## ")) group = line.slice(3);
    const { title, name } = ROW.exec(line)?.groups ?? {};
    return title === undefined || name === undefined ? [] : [{ group, title, name }];
  });
}

/** List of pages with their contents, in the form of llmstxt.org; `url` is the service's public URL, without a trailing slash. */
export function llmsText(url: string): string {
  const listed = INDEX.split("\n").flatMap((line) => {
    const { title, name, about } = ROW.exec(line)?.groups ?? {};
    if (title !== undefined) return [`- [${title}](${url}/docs/${name}): ${about}`];
    return line.startsWith("## ") ? ["", line, ""] : [];
  });
  const api = [
    `- [OpenAPI](${url}/v1/openapi.json): every operation, its fields and errors`,
    `- [Operations](${url}/docs): the same as a page for people`,
  ];
  return ["# roomd", "", `> ${ABOUT}`, ...listed, "", "## API", "", ...api, ""].join("\n");
}
