"""Words that look like a part of a name and are none: occupations, animals and fields before さん, 様 or 先生; common nouns before 駅, 社 or 祭;
topics among tags."""

import re

from memory_mcp.characters import KANJI
from memory_mcp.language.names import fold
from memory_mcp.patterns import bounded

# Times before a name: 昨日田中さん, 毎朝図書館. 今日子 and 明日香 are names.
_TIMES = (
    "今日(?!子) 昨日 明日(?![香菜美葉奈]) 明後日 一昨日 今朝 今夜 今晩 昨夜 昨晩 先日 後日 当日 前日 翌日 翌朝 毎日 毎朝 毎晩 毎週 毎月 毎年 先週 来週 今週 再来週 先月 来月 今月 "
    "去年 昨年 今年 来年 再来年 最近 今度 今回 前回 次回 今後 以前 午前 午後 正午 朝方 夕方 深夜 早朝 週末 平日 休日 普段 将来 近々 先程 [月火水木金土日]曜日? [0-9０-９一二三四五六七八九十]+[時日月年分]半?"
).split()
# Adverbs before a name: 結局田中さん. 一緒に and the like end in kana and need not be listed.
_ADVERBS = (
    "結局 実際 全員 突然 多分 絶対 当然 正直 本当 一応 一番 最初 最後 大体 全部 勿論 時々 偶然 急遽 直接 至急 早速 現在 特別 同時".split()
)
# Roles before a name: 友人田中さん, 担当佐藤さん, 弁護士片山さん. 妹尾 and 姉崎 are surnames.
_ROLES = (
    "同僚 友人 上司 部下 親友 恋人 担当 先輩 後輩 隣人 主治医 医師 弁護士 税理士 作家 歌手 俳優 女優 声優 漫画家 友達 幼馴染 同級生 旧友 兄 姉(?![崎川小]) 弟(?!子) 妹(?!尾) 叔父 叔母 従兄弟 従姉妹 "
    "新人 前任 後任 営業 経理 総務 人事 開発 広報 社員 店員 代表 秘書"
).split()
# Surnames that end like a department: 服部半蔵さん is not 半蔵 of the department 服.
LIKE_A_PART = frozenset("服部 阿部 安部 渡部 岡部 矢部 磯部 園部 綾部 建部 長谷部 日下部 氷室 小室 仁科".split())
_PART = f"(?!{'|'.join(sorted(LIKE_A_PART))})[{KANJI}]{{1,4}}(?:部|課|社|店|係|班|組|室|科)(?=..)"
BEFORE_NAME = bounded(f"(?:{'|'.join((*_TIMES, *_ADVERBS, *_ROLES, _PART))})+")
TITLES = ("先生", "先輩", "部長", "課長", "係長", "主任", "社長", "店長", "教授", "博士", "選手", "監督", "コーチ")
# Before an honorific: relatives (another rule finds the writer's own), occupations, deities, greetings.
_NOT_NAMES = frozenset(
    "皆 皆々 みな みんな 客 医者 店員 隣 向かい 大家 奥 若奥 旦那 若旦那 子 子供 子ども こども 神 女神 仏 王 王子 王女 女王 姫 殿 若 星 月 日 天使 悪魔 貴 俺 僕 私 彼 彼女 貴方 貴女 自分 己 我 今 "
    "母 父 姉 兄 妹 弟 祖母 祖父 叔母 叔父 伯母 伯父 義母 義父 義姉 義兄 義妹 義弟 婆 爺 嫁 花嫁 婿 花婿 娘 息子 孫 妻 夫 新郎 新婦 妊婦 主婦 親 親御 両親 家族 遺族 坊 坊っ 坊主 嬢 小僧 赤 赤子 "
    "学生 生徒 患者 大将 女将 若女将 主人 友人 恋人 美人 老人 大人 仲人 素人 玄人 商人 隣人 病人 犯人 本人 新人 職人 芸人 役人 管理人 外国人 日本人 相談人 大工 左官 板前 棟梁 幹事 番頭 "
    "担任 主治医 受付 審判 先方 相手 弟子 講師 同窓 同僚 上司 部下 友達 親友 先輩 後輩 相撲 得意 取引先 常連 警察 税務署 消防 配達 宅配 郵便 俳優 女優 声優 監督 警備 運転 "
    "何 誰 何方 某 何某 各 他 同 両 諸 一人 二人 三人 全員 巡り 稲荷 地蔵 釈迦 観音 閻魔 世間 天道 何とか 誰か 何か 手伝い 酔っ払い 知り合い 引っ越し 司会 社長 会長 御社 弊社 他社 当社 "
    "牛 豚 馬 鳥 魚 虫 犬 猫 亀 猿 狐 狸 羊 鹿 鬼 蟻 蜂 兎 象 熊 蛙 鼠 鶏 子犬 子猫 双子 三つ子 仔犬 仔猫 黒猫 白猫 野良猫 "
    "ウシ ブタ ウマ トリ サル キツネ タヌキ ヒツジ シカ カメ アリ ハチ カエル ネズミ ゾウ キリン パンダ ライオン ペンギン イルカ ワニ カバ ゴリラ リス ハムスター ネコ イヌ ワン ワンワン ニャン ニワトリ ヒヨコ クマ ウサギ "
    "うし ぶた うま とり さる きつね たぬき ひつじ しか かめ あり はち かえる ねずみ ぞう きりん ぱんだ らいおん ねこ いぬ わん わんわん にゃん にゃんこ わんこ ひよこ くま うさぎ おに ことり "
    "サンタ マスター ドクター ママ パパ ファン ナース スタッフ オーナー コック シェフ モデル メーカー ライター デザイナー エンジニア ユーザー ヘルパー ベビーシッター カメラマン セールスマン アイドル ドライバー アルバイト "
    "バイト パート リーダー クライアント ゲスト スポンサー メンバー ボランティア インストラクター トレーナー サポーター フォロワー リスナー パイロット プログラマー ガイド モブ イケメン オジ オバ ジジ ババ "
    "たく みなみな くん さん ちゃん さま なん なんとか だれか どなたか だれ どなた こちら そちら あちら どちら ぼく おれ わたし あなた おっ ぼっ おか おと おば おじ ばあ じい ばっ じっ とう かあ ねえ にい よめ むすめ むすこ まご "
    "ごめん ごちそう いらっしゃい あいこ いもうと おとうと いとこ あか ちび でぶ のっぽ ぶりっこ いいこ よいこ おりこう もっと きっと やっと ずっと いつも まだ まさか "
    "ai ol ca mc pt ad dj npc vtuber youtuber sns pm pc bot mvp nba mlb nhl pta jr".split()
)
# Surnames and given names that look like an occupation in 屋, 手, 師 or 士.
_NAMES = frozenset("土屋 守屋 古屋 関屋 新屋 粟屋 井手 薬師 土師 健士 剛士 篤士 敦士 毅士 羽生 氏家 福家 田所 度会".split()) | LIKE_A_PART
_OCCUPATION = bounded(
    "(?:屋|[一二三四五六七八九十数何]人|員|手|師|係|者|先|職人"
    "|(?:護|理|計|防|育|書|行|縦|養|生|築|備|法|力|騎|戦|武|紳|博|修|棋|剣)士|(?:画|作|築|門|説|真|楽|論|語|業|治|農|術|資|産|歌|劇)家"
    "|[学校習入業修験年塾院寮級待]生|[校園院会市町村船駅隊班局所室支店部課係組団議委員]長|[国名能般会]人|司|婦人|娘)$"
)
# Companies and places are given さん too: 横浜銀行さん.
_NOT_A_PERSON = bounded(
    "..(?:銀行|工業|商事|産業|建設|電機|製薬|大学|高校|病院|医院|組合|会社|本社|支社|商店|工務店|書店|神社|役所|区役所|出版|新聞|業部|務部|理部|売部|事部)$"
)
# What one teaches, plays, leads or researches: 数学先生 is short for 数学の先生, サッカー選手 is any player.
_FIELDS = frozenset(
    "数学 国語 英語 理科 社会 音楽 美術 体育 料理 保健 保育 教頭 校長 園長 担任 専任 副 前 新 元 現 名誉 准 助 客員 特任 指導 担当 大学 研究 営業 総務 人事 経理 開発 技術 編集 広報 企画 製造 販売 法務 財務 第一 第二 "
    "女性 男性 女 男 名 総 鬼 大 若 女将 二代目 取締役 代表取締役 代表 日本代表 学年 現場 教務 看護 子会社 親会社 雇われ 臨時 敏腕 物知り 直属 塾 部活 高校 中学 小学校 同 全 各 "
    "野球 プロ野球 高校野球 水泳 陸上 卓球 柔道 剣道 体操 相撲 競馬 囲碁 将棋 一流 有力 注目 主力 若手 新人 外国人 相手 出場 投手 映画 舞台 撮影 作画 音響 助演 "
    "サッカー テニス バスケ バスケット バスケットボール バレー バレーボール ゴルフ スキー スケート ラグビー ボクシング プロ マラソン チーム リーダー グループ エリア ユース クラブ ダンス ピアノ ギター ヨガ スイミング "
    "ジム パソコン アルバイト バイト パート ゼミ サークル アメフト オリンピック パラリンピック プロレス レスリング フィギュア フィギュアスケート スノーボード トップ スター ベテラン ルーキー ライバル ゲーム".split()
)
_AFTER_FIELDS = ("様", "氏", *TITLES)
# 営業部長, 理学博士: a department, or a field of study.
_PART_OF_A_FIRM = bounded(f"^[{KANJI}]+(?:学|業|務|画|術|校|社|部|課|室|局|院|所|店|支|代表|任|付|席|会)$")
_NO_NAME_BEFORE = {
    "様": bounded("(?:[仕模同多異有一左今別外図紋文両]|方々)$"),  # 模様, 仕様, 同様, also in 雨模様 and 新仕様
    "氏": bounded("^(?:元?彼|[両某摂華源平諸同各何姓本当])$"),  # 彼氏, 某氏, 源氏; 摂氏 and 華氏 measure heat
    "君": bounded("諸$|^[暴主夫細名幼若姫大父母兄貴明聖]$"),  # 諸君, 暴君, 主君, 夫君
    **dict.fromkeys(TITLES, _PART_OF_A_FIRM),
}


def is_not_a_name(name: str, honorific: str) -> bool:
    """Whether the word before an honorific is a description and not a name."""
    if name in _NAMES:
        return False
    if fold(name) in _NOT_NAMES or _OCCUPATION.search(name) or _NOT_A_PERSON.search(name):
        return True
    if name in _FIELDS and honorific in _AFTER_FIELDS:
        return True
    no_name = _NO_NAME_BEFORE.get(honorific)
    return no_name is not None and no_name.search(name) is not None


# Before a suffix such as 公園, 社 or 祭 these make no name: 近所の公園 is any park, 今回の案件 any case.
NO_NAME = frozenset(
    # where, which
    "近所 近く 近隣 駅前 最寄 最寄り 隣 地元 市内 都内 市立 私立 公立 国立 県立 区立 都立 私設 認可 無認可 総合 大 小 中 新 旧 古 本 同 当 各 全 某 母 女子 男子 人 我 他 裏 表 今回 前回 次回 次 前 後 自 別 "
    "市 県 町 村 区 都 道 府 都道府 地方 中央 国際 世界 全国 国内 海外 現地 社内 校内 企業 所属 志望 第一志望 名門 進学 有名 大手 老舗 高級 格安 一流 専門 個人 一般 有料 無料 日帰 天然 混浴 露天 "
    # how, how long, what for
    "毎 新規 共同 長期 短期 中期 年間 月間 週間 事業 生産 旅行 夏 冬 春 秋 無人 宅 事業計画 大型 夜 朝 昼 貸し 学 文化 学園 体育 収穫 感謝 人生 老後 生活 家計 家族 節約 避難 都市 行動 全体 "
    "返済 勉強 学習 ダイエット 減量 改善 資金 予算 開発 販売 工事 移行 作業 営業 大口 小口 未定 重要 緊急 優先 継続 単発 無 休日 結婚 前夜 後夜 "
    # kinds of houses, offices, schools
    "動物 植物 水族 美術 博物 図書 観光 音楽 食 温 児童 市民 社員 学生 学生用 大学 学級 学校 救急 産婦人科 産科 眼科 皮膚科 耳鼻科 耳鼻咽喉科 小児科 内科 外科 整形外科 精神科 歯科 小児 矯正 審美 "
    "法律 会計 芸能 選挙 税理士 弁護士 司法書士 設計 探偵 労働 管理 協同 共済 信用 商業 工業 農業 通信制 定時制 都市 血液 骨髄 電子 貯金 "
    "道路 ダム 住宅 工場 施設 本社 マンション ビル 橋 空港 電気 軽 中古 新型 普通 水素 自家用 投資 賃貸 重 芸術 映画 "
    "回遊 発 壁 冷凍 小劇場 魚 株式 労働市 金融 中古車 乗換 乗り換え 終着 始発 途中 純 漫画 メイド "
    "ビジネス シティ リゾート ラブ カプセル ネット フル ハーフ ネコ 猫 犬 ドッグ マンガ ゲーム アニメ 児童 園児".split()
)
# Whole words, also at the end of a longer one: マグカップ, 大都市, 冠婚葬祭, 高級ブランド, 沢山.
NO_SUCH_NAME = bounded(
    "(?:都市|朝市|地区|学区|選挙区|管区|保護区|半島|列島|離島|孤島|鉄塔|石塔|火山|雪山|登山|鉱山|沢山|河川|ブランド|グランド|ガーランド|冠婚葬祭|労働市場|株式市場|国内市場|海外市場"
    "|(?:マグ|ティー|計量|コーヒー|紙|ブラ|シリコン|プラ|ペーパー|ヨーグルト|アイス|スープ|ピンク|吸)カップ)$|^(?:長谷川|宇田川|小野寺|神宮寺)$"
)
# Before 通り in the sense of "as": 予定通り, 二通り.
NO_STREET = bounded(
    "(?:予定|計画|文字|想像|期待|約束|希望|普段|従来|指示|言葉|額面|時間|例年|通常|命令|注文|説明|筋書|見込|評判|案|型|図面|要望|契約|以前|前述|上記|下記|名前|元|[一二三四五六七八九十数何]|[0-9]|人|宣言|手順|法律|マニュアル|スケジュール|イメージ|レシピ|ルール)$"
)


def without_leading_words(run: str) -> str:
    """The name that a run of kanji ends with: 昨日田中 → 田中. Empty where nothing is left of it: 昨日."""
    before = BEFORE_NAME.match(run)
    return run[before.end() :] if before else run


# Only a list of words separates a kanji name from a kanji word, so the most frequent tags are listed here.
# A lower-case tag is a word: lab, diary, home.
_LOWER_CASE_WORD = bounded("[a-z0-9_ -]+")
_TOPICS = frozenset(
    "重要 至急 緊急 大事 要確認 確認 完了 未完了 未定 保留 注意 秘密 極秘 記録 日記 日誌 備忘録 予定 日程 計画 目標 課題 問題 質問 回答 相談 連絡 報告 会議 会議録 議事録 打ち合わせ 打合せ 面談 面接 商談 出張 "
    "仕事 業務 作業 勤務 残業 休暇 職場 会社 社内 同僚 上司 部下 取引先 顧客 常連 客 営業 経理 総務 人事 開発 設計 企画 研修 研究 論文 発表 資料 書類 契約 予算 請求 売上 家計 お金 金銭 貯金 投資 保険 税金 買い物 通販 "
    "学校 授業 宿題 勉強 学習 試験 受験 資格 部活 進路 卒業 入学 先生 生徒 学生 友達 友人 親友 恋人 恋愛 結婚 離婚 夫婦 家族 両親 親 子供 子ども 育児 子育て 兄弟 姉妹 親戚 帰省 実家 家 家事 掃除 洗濯 料理 食事 食べ物 飲み物 "
    "朝食 昼食 夕食 弁当 外食 お酒 酒 店 お店 町 町の人 近所 地域 引っ越し 住まい 部屋 健康 病気 病院 通院 薬 睡眠 運動 散歩 旅行 旅 観光 温泉 移動 交通 電車 車 自転車 天気 季節 春 夏 秋 冬 正月 誕生日 記念日 行事 祭り "
    "趣味 好み 好き 嫌い 苦手 音楽 映画 読書 本 漫画 小説 写真 絵 芸術 動画 番組 推し 配信 遊び 将棋 野球 釣り 園芸 植物 花 動物 犬 猫 果物 野菜 ペット 服 美容 感情 気持ち 悩み 不安 嬉しい 悲しい 夢 思い出 過去 未来 人物 場所 "
    "人間関係 関係 会話 雑談 挨拶 約束 名前 設定 性格 世界観 物語 技術 機械 電話 情報 知識 英語 日本語 言葉 文化 歴史 政治 経済 社会 科学 数学 宗教 台風 地震 災害 事故 事件 その他 まとめ 要約 一般 個人 共有 公開 下書き "
    "メモ アイデア アイディア レシピ ゲーム ニュース タスク イベント プライベート スケジュール ミーティング プロジェクト テスト リスト ログ ノート トラブル バグ エラー ライフ ファッション グルメ カフェ ランチ ディナー スイーツ "
    "スポーツ トレーニング ダイエット ショッピング ビジネス プログラミング コード デザイン ドキュメント マンガ アニメ ドラマ ライブ バイト アルバイト サークル ゼミ レポート テーマ キャラ キャラクター ストーリー シナリオ デート パーティー "
    "プレゼント メール チャット データ サーバー システム ツール アプリ パソコン スマホ".split()
)


def may_be_a_name(tag: str) -> bool:
    """Whether a tag may be the name of an entity: it is no common word and not made of such words, as 会議/重要 is."""
    parts = [part for part in re.split("[/・:：#\\s]+", tag) if part]
    return _LOWER_CASE_WORD.fullmatch(tag) is None and any(part not in _TOPICS for part in parts)
