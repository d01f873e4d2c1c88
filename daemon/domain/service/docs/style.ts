/** Style sheet of the pages of /docs: light, dark and print, wide and narrow. */
import TOKENS from "../../../web/tokens.css" with { type: "text" };

export const STYLE = `${TOKENS}
:root { line-height: 21px; scroll-padding-top: 16px; }
* { box-sizing: border-box; } [hidden] { display: none !important; }
body { margin: 0; background: var(--bg); color: var(--text); display: grid; grid-template-columns: 264px minmax(0, 1fr); }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
code, pre { font: 12.5px/19px var(--mono); }
.muted { color: var(--muted); }

nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border-right: 1px solid var(--line); padding: 14px 12px 24px; }
nav .top { display: flex; align-items: center; justify-content: space-between; padding: 0 8px 10px; }
nav .brand { font-weight: 650; color: inherit; }
nav .search { display: block; position: sticky; top: -14px; padding: 0 0 8px; background: var(--bg); z-index: 1; }
nav input { width: 100%; border: 1px solid var(--line); border-radius: var(--radius); padding: 6px 10px; font: inherit; color: inherit;
  background: var(--surface); }
nav input::placeholder { color: var(--muted); opacity: 1; }
nav h2 { font-size: 12px; line-height: 18px; font-weight: 500; color: var(--muted); margin: 14px 8px 2px; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: block; padding: 3px 8px; border-radius: var(--radius); color: inherit; overflow-wrap: anywhere; }
nav li a:hover { background: var(--sunk); text-decoration: none; }
nav li code { font-size: 11.5px; } .none { margin: 8px; color: var(--muted); }
@supports selector(::details-content) {
  nav summary { display: none; } nav details::details-content { content-visibility: visible; display: block; height: auto; }
}
:root:not(.searching) .found { display: none; }

main { padding: 20px 28px 80px; max-width: 1000px; min-width: 0; }
h1 { font-size: 22px; line-height: 30px; margin: 0 0 6px; font-weight: 650; letter-spacing: -0.01em; }
h1 small { font-weight: 400; color: var(--muted); font-size: 14px; }
main > h2 { font-size: 17px; line-height: 26px; font-weight: 650; margin: 44px 0 0; }
main > h2::first-letter, nav h2::first-letter { text-transform: uppercase; }
h3 { font-size: 15px; line-height: 22px; font-weight: 650; margin: 0 0 2px; } h3 a { color: inherit; }
h4 { font-size: 12px; line-height: 18px; font-weight: 500; color: var(--muted); margin: 14px 0 2px; }
p { margin: 4px 0 10px; max-width: 76ch; overflow-wrap: break-word; } ol { margin: 4px 0 12px; padding-left: 22px; }
section { border-top: 1px solid var(--line); padding-top: 18px; margin-top: 22px; scroll-margin-top: 0; }
main > h2 + section { margin-top: 10px; }
:target > h3 a, tr:target code { color: var(--accent); }
.call { display: flex; flex-wrap: wrap; gap: 2px 12px; align-items: baseline; margin: 0 0 8px; overflow-wrap: anywhere; max-width: none; }
.method { font-weight: 700; } .names a { margin-right: 10px; white-space: nowrap; }
button { border: 1px solid var(--line); background: var(--surface); border-radius: var(--radius); padding: 2px 9px; font: inherit;
  font-size: 12px; color: var(--muted); cursor: pointer; } button:hover { color: var(--text); }
.example { position: relative; } .example .copy { position: absolute; top: 7px; right: 7px; }
pre { margin: 2px 0 6px; background: var(--sunk); border: 1px solid var(--line); border-radius: var(--radius); padding: 10px 12px;
  overflow-x: auto; tab-size: 2; } .example pre { padding-right: 74px; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-weight: 500; font-size: 12px; color: var(--muted); padding: 3px 14px 4px 0; border-bottom: 1px solid var(--line); }
td { padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: break-word; }
td:first-child { min-width: 150px; } td:last-child { padding-right: 0; overflow-wrap: anywhere; }
details { margin: 2px 0; } summary { cursor: pointer; color: var(--muted); } summary:hover { color: var(--text); }
.offscreen { position: fixed; top: -100px; }

@media (max-width: 760px) {
  :root { scroll-padding-top: 108px; }
  body { display: block; }
  nav { height: auto; max-height: 100vh; border-right: 0; border-bottom: 1px solid var(--line); padding: 10px 14px 8px; background: var(--bg); z-index: 1; }
  nav .search { position: static; } nav summary { display: list-item; padding: 0 0 2px; }
  nav .top { padding: 0 0 8px; }
  nav details:not([open])::details-content { content-visibility: hidden; display: none; } nav details[open] { max-height: 70vh; overflow-y: auto; }
  main { padding: 14px 14px 60px; }
  table, tbody, tr, td { display: block; } thead { display: none; }
  td { border: 0; padding: 0; overflow-wrap: anywhere; } tr { border-bottom: 1px solid var(--line); padding: 7px 0; } td:first-child { min-width: 0; }
  td:not(:first-child):not(:last-child) { display: inline; color: var(--muted); font-size: 12px; margin-right: 10px; }
  .example pre { padding-top: 36px; padding-right: 12px; }
}
@media print { nav, button { display: none; } body { display: block; } }
`;
