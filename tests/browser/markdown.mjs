// Answers are drawn as text and a few safe elements, whatever a model writes.

import assert from 'node:assert/strict';
import { test } from './lib.mjs';

const HOSTILE = [
  '<img src=x onerror="window.broken=1"><script>window.broken=1</script>',
  '[run](javascript:window.broken=1) [data](data:text/html,x) [ok](https://example.org/a_(b))',
  '`<b>code</b>` **bold `x`** https://example.org/path, and **',
].join('\n');

await test('an answer never becomes markup beyond the known few elements', async (visitor) => {
  const page = await visitor.arrive();
  const draw = (text) =>
    page.evaluate(async (source) => {
      const { MarkdownView } = await import('/assets/markdown.js');
      const root = document.createElement('div');
      document.body.append(root);
      new MarkdownView(root).show(source);
      const result = { html: root.innerHTML, text: root.textContent, broken: window.broken, tags: [...root.querySelectorAll('*')].map((node) => node.localName) };
      root.remove();
      return result;
    }, text);

  const hostile = await draw(HOSTILE);
  assert.equal(hostile.broken, undefined);
  assert.deepEqual([...new Set(hostile.tags)].sort(), ['a', 'code', 'p', 'strong']);
  assert.ok(hostile.text.includes('<img src=x onerror="window.broken=1">'));
  assert.ok(hostile.text.includes('[run](javascript:window.broken=1)'), 'a link that is not followed must stay readable');
  assert.ok(!/href="(javascript|data):/.test(hostile.html));
  assert.ok(hostile.html.includes('href="https://example.org/a_(b)" target="_blank" rel="noopener noreferrer"'));
  assert.ok(hostile.html.includes('href="https://example.org/path"'), hostile.html);

  const marks = await draw('*stressed* _too_ ~~not~~ 2*3*4 snake_case_name ![picture](https://example.org/x.png)\n\n> quoted\n> - item\n\n---\n\nafter');
  assert.deepEqual([...new Set(marks.tags)].sort(), ['a', 'blockquote', 'del', 'em', 'hr', 'li', 'p', 'ul']);
  assert.ok(marks.text.includes('2*3*4 snake_case_name picture'), marks.text);
  assert.ok(!marks.tags.includes('img'), 'an image of another server was to be loaded');

  const table = await draw('| a | b |\n|---|--:|\n| 1 | 2 \\| 3 |\n| 4 |');
  assert.ok(table.html.includes('<td class="align-right">2 | 3</td>'), table.html);
  assert.equal(table.tags.filter((tag) => tag === 'td').length, 4);

  const list = await draw('1. one\n   ```sh\n   ls *.rs\n   ```\n2. two\n   - inner\n\n3. three');
  assert.ok(list.html.includes('<code>ls *.rs</code>'), list.html);
  assert.equal(list.tags.filter((tag) => tag === 'ol').length, 1, list.html);
  assert.equal(list.tags.filter((tag) => tag === 'li').length, 4, list.html);

  // Grown token by token, a text ends in the same nodes as drawn at once, and settled blocks are not drawn again.
  const grown = await page.evaluate(async () => {
    const { MarkdownView } = await import('/assets/markdown.js');
    const text = 'First **one**.\n\n- a\n- b\n\n```js\nlet x = 1;\n\nlet y;\n```\n\n| h |\n|---|\n| c |\n\n> quoted *so*\n\n---\n\nLast `one`.';
    const [root, whole] = [document.createElement('div'), document.createElement('div')];
    const view = new MarkdownView(root);
    let first;
    let kept = true;
    for (let end = 1; end <= text.length; end += 1) {
      view.show(text.slice(0, end));
      if (end === 20) first = root.firstChild;
      if (end > 20) kept &&= root.firstChild === first;
    }
    new MarkdownView(whole).show(text);
    return { kept, same: root.innerHTML === whole.innerHTML, html: root.innerHTML };
  });
  assert.ok(grown.same, grown.html);
  assert.ok(grown.kept, 'a settled block was drawn again');

  // Long unclosed marks must not hang the page.
  for (const unit of ['**a ', '`a ``b ', '- ', '[a](', '# a ', '|-|\n', '*a ', '_a ', '~~a ', '![a](', '> ']) {
    const started = Date.now();
    await draw(unit.repeat(30_000));
    assert.ok(Date.now() - started < 5000, `drawing many of ${JSON.stringify(unit)} took ${Date.now() - started} ms`);
  }
});
